"""Unknown flags are reported at once, those of tensor2tensor explained; of wrong values, the first."""

from t2t_revival.cli import trainer

# The first master's line in tensor2tensor's document on distributed training.
DISTRIBUTED = """
t2t-trainer --master=grpc://10.0.0.1:5555 --ps_replicas=2 --worker_replicas=1 --worker_gpu=0 --worker_id=0
--ps_gpu=1 --sync --schedule=train --worker_job=/job:master --model=transformer --hparams_set=transformer_base
--problem=translate_ende_wmt32k
"""


def faults(main, text, capsys):
    """Faults that a command reports for a command line, one per item."""
    assert main(text.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    first, *lines = output.err.splitlines()
    command = text.split()[0]
    assert first.startswith(f"{command}: error: ")
    if not lines:
        return [first.removeprefix(f"{command}: error: ").removesuffix(f" (see {command} --help)")]
    assert first == f"{command}: error: wrong command line (see {command} --help):"
    assert all(line.startswith("  ") for line in lines)
    return [line.strip() for line in lines]


def test_a_command_of_t2ts_documents_is_answered_at_once(capsys):
    found = faults(trainer.main, DISTRIBUTED, capsys)
    assert [line.split(":")[0] for line in found] == [
        "--master, --worker_replicas, --worker_id, --sync, --worker_job are now --strategy=multi_worker",
        "--ps_replicas, --ps_gpu are gone",
        "--worker_gpu is now --strategy",
        "--schedule is gone",
        "--model is gone",
        "--problem=translate_ende_wmt32k is tensor2tensor's; here it is --problem=translate_ende "
        "--vocab_size=32768; WMT14 of TensorFlow Datasets, where T2T took WMT18's news commentary",
    ]


def test_other_faults_are_in_the_same_answer(capsys):
    text = "pie --problem=a --train_stops 4 --flag=x --problem=b -- foo --xla"
    beginnings = [
        "unknown flag 'train_stops'; did you mean train_steps or train_minutes or max_nonfinite_steps?",
        "unknown flag 'flag'",
        "unexpected argument 'pie'",
        "unexpected argument 'foo'",
        "unexpected argument '--xla'",
        "--problem is given twice: give it once",
    ]
    found = faults(trainer.main, f"t2t-trainer {text}", capsys)
    assert len(found) == len(beginnings)
    assert all(map(str.startswith, found, beginnings)), found


def test_forms_of_values(tmp_path):
    """Values may be separate words, joined by =, or from a flag file, which later words replace."""
    file = tmp_path / "flags.txt"
    file.write_text("--train_steps=3\n--noxla\n")
    words = f"--train_steps 7 --xla --flagfile={file} -problem b --hparams --x --precision float32"
    flags = trainer.main.parse(["t2t-trainer", *words.split()])
    assert (flags.train_steps, flags.config.xla, flags.problem, flags.hparams) == (3, False, "b", "--x")
