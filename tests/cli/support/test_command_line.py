"""All faults of a command line are reported at once; flags of tensor2tensor are explained."""

import subprocess
import sys

import pytest

from t2t_revival.cli import bleu, datagen, decoder, exporter, query_server, rerank, trainer

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


@pytest.mark.parametrize(
    ("main", "text", "expected"),
    [
        (trainer.main, "--generate_data", ["--generate_data is gone: data is made where it is missing"]),
        (trainer.main, "--nogenerate_data", ["--nogenerate_data is gone: data is made where it is missing"]),
        (
            trainer.main,
            "--model transformer --hparams_set=tiny",
            ["--model is gone: there is one model, the Transformer"],
        ),
        (
            trainer.main,
            "--hp_batch_size 512 --hp_num_heads=4",
            ['--hp_batch_size, --hp_num_heads are now --hparams: as in --hparams="batch_size=2048,num_h'],
        ),
        (
            trainer.main,
            "--hp_learning_rate -1 --xla_compile",
            ["--hp_learning_rate is", "--xla_compile is now --xla"],
        ),
        (
            trainer.main,
            "--job-dir=gs://x",
            ["--job-dir is gone: Cloud ML Engine is no more; docs/several_machines"],
        ),
        (trainer.main, "--problems=x", ["--problems is now --problem: of T2T 1.4 and before"]),
        (datagen.main, "--num_shards=100", ["--num_shards is gone: 10 of train"]),
        (datagen.main, "--num_cases=100", ["unknown flag 'num_cases'; known: "]),
        (
            decoder.main,
            "--train_steps=4",
            ["--train_steps is a flag of t2t-trainer, and does nothing in t2t-decoder"],
        ),
        (decoder.main, "--worker_gpu=1", ["--worker_gpu is now t2t-trainer --strategy: all visible GPUs"]),
        (
            decoder.main,
            "--model=transformer --hparams=a=1",
            ["--model, --hparams are gone: read from output_dir"],
        ),
        (exporter.main, "--data_dir=x", ["--data_dir is gone: vocabulary and settings are in output_dir"]),
        (query_server.main, "--data_dir=x", ["--data_dir is gone: the vocabulary is in the exported model"]),
        (
            decoder.main,
            "--output_dir=gs://x/y",
            ["--output_dir=gs://x/y: must be a path, not a URL; mount it"],
        ),
        (
            datagen.main,
            "--data_dir=data --vocab_file=a,file:///b",
            ["--vocab_file=file:///b: must be a path, not a URL: give /b"],
        ),
        (bleu.main, "--source=x", ["--source is gone: T2T did not read it"]),
    ],
)
def test_flags_of_t2t(main, text, expected, capsys):
    name = f"t2t-{main.__module__.rpartition('.')[2].replace('_', '-')}"
    found = faults(main, f"{name} {text}", capsys)
    assert len(found) == len(expected)
    for line, beginning in zip(found, expected, strict=True):
        assert line.startswith(beginning)


def test_other_faults_are_in_the_same_answer(capsys):
    text = "--train_steps=abc pie --keep_checkpoint_max=-3 --train_stops=4 --noxla=3 -- foo --problem"
    beginnings = [
        "unknown flag 'train_stops'; did you mean train_steps or max_nonfinite_steps?",
        "flag --train_steps=abc: ",
        "unexpected argument 'pie'",
        "flag --keep_checkpoint_max=-3: ",
        "--noxla=3 does not take an argument",
        "unexpected argument 'foo'",
        "unexpected argument '--problem'",
    ]
    found = faults(trainer.main, f"t2t-trainer {text}", capsys)
    assert len(found) == len(beginnings)
    assert all(map(str.startswith, found, beginnings)), found


def test_forms_of_values(tmp_path, monkeypatch):
    """Values may be separate words, joined by =, or from a flag file, which later words replace."""
    seen = {}
    monkeypatch.setattr(trainer, "_train", lambda values: seen.update(values.flag_values_dict()))
    file = tmp_path / "flags.txt"
    file.write_text("--train_steps=3\n--noxla\n")
    words = f"--train_steps 7 --xla --flagfile={file} -problem b --hparams --x --precision float32"
    assert trainer.main(["t2t-trainer", *words.split()]) is None or seen
    assert (seen["train_steps"], seen["xla"], seen["problem"], seen["hparams"]) == (3, False, "b", "--x")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("--problem=a --hparams_set=tiny --problem b", "--problem is given twice: give it once"),
        ("--train_steps=1 -train_steps 2 --train_steps=3", "--train_steps is given 3 times: give it once"),
        ("--xla --noxla", "--xla is given twice: give it once"),
    ],
)
def test_a_flag_given_twice(words, fault, capsys):
    """A second value would replace the first one silently."""
    assert fault in faults(trainer.main, f"t2t-trainer {words}", capsys)[0]


@pytest.mark.parametrize("command", [bleu, datagen, decoder, exporter, query_server, rerank, trainer])
def test_no_command_takes_a_flag_twice(command, capsys):
    assert "--debug is given twice" in faults(command.main, "command --debug --debug", capsys)[0]


def test_a_list_given_twice(capsys):
    fault = faults(rerank.main, "t2t-rerank --scorers=a --scorers=b", capsys)[0]
    assert "--scorers is given twice: give it once, its values separated by commas" in fault


def test_a_file_of_flags_that_is_missing(capsys):
    assert "nowhere" in faults(trainer.main, "t2t-trainer --flagfile=nowhere", capsys)[0]


def test_a_wrong_command_line_needs_no_tensorflow():
    program = (
        "import sys; from t2t_revival.cli import trainer\n"
        "status = trainer.main(['t2t-trainer', '--model=x', '--problem=image_mnist'])\n"
        "assert status == 2 and 'tensorflow' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--problem=image_mnist is tensor2tensor's and out of scope: images and video" in done.stderr
