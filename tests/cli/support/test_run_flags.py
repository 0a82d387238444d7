"""Models are found under tensor2tensor's names; for its folders, errors propose the import."""

import json
import shlex

import pytest

from t2t_revival import HParams, T2TError, registration, registry
from t2t_revival.cli import (
    attention,
    avg_all,
    back_translate,
    decoder,
    distill,
    exporter,
    import_checkpoint,
    query_server,
    trainer,
    translate_all,
)
from t2t_revival.cli import eval as eval_command
from t2t_revival.model_folder import RUN_FILE


def parsed(*arguments):
    return decoder.main.parse(["t2t-decoder", *arguments])


@pytest.fixture
def model(out):
    """A model of `translate_ende` whose run.json has another problem or set: (problem, hparams set)."""

    def make(problem="translate_ende", hparams_set="tiny"):
        path = out / RUN_FILE
        run = json.loads(path.read_text())
        del run["checksum"]
        path.write_text(json.dumps({**run, "problem": problem, "hparams_set": hparams_set}))
        return out

    return make


@pytest.mark.parametrize(
    ("problem", "theirs"),
    [
        ("translate_ende", "translate_ende_wmt32k"),
        ("translate_ende", "translate_ende_wmt8k_packed"),
        ("translate_ende_rev", "translate_ende_wmt32k_rev"),
        ("translate_encs", "translate_encs_wmt32k"),
        ("translate_ende_wmt32k", "translate_ende_wmt32k"),
    ],
)
def test_a_model_has_t2ts_name_too(model, problem, theirs):
    out = model(problem)
    folder = parsed(f"--output_dir={out}", f"--problem={theirs}").open_model()
    assert (folder.path, folder.run.problem) == (out, problem)


def test_a_users_problem_with_t2ts_name_is_another(model, monkeypatch):
    monkeypatch.setitem(
        registration.PROBLEMS, "translate_ende_wmt8k", type(registry.problem("translate_ende"))
    )
    with pytest.raises(T2TError, match="holds a model of translate_ende"):
        parsed(f"--output_dir={model()}", "--problem=translate_ende_wmt8k").open_model()


def test_t2ts_set_of_the_same_model(model):
    out = model(hparams_set="base")
    registry.hparams("transformer_base_v2").save(out)
    parsed(f"--output_dir={out}", "--hparams_set=transformer_base").open_model()
    for name in ("transformer_base_v1", "transformer_big", "big"):
        with pytest.raises(T2TError, match=f"--hparams_set={name}: .* holds a model of base"):
            parsed(f"--output_dir={out}", f"--hparams_set={name}").open_model()


def test_the_default_folder_of_t2ts_name(model, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    flags = ["--problem=translate_ende_wmt32k", "--hparams_set=tiny"]
    ours = tmp_path / "t2t_train" / "translate_ende" / "tiny"
    assert parsed(*flags).run_dir() == ours
    with pytest.raises(T2TError, match=f"no trained model in {ours}"):
        parsed(*flags).open_model()
    ours.parent.mkdir(parents=True)
    model().rename(ours)
    assert parsed(*flags).open_model().path == ours
    own = tmp_path / "t2t_train" / "translate_ende_wmt32k" / "tiny"
    own.mkdir(parents=True)
    assert parsed(*flags).run_dir() == own


def test_a_server_takes_t2ts_name(monkeypatch):
    flags = query_server.main.parse(["t2t-query-server", "--problem=translate_enfr_wmt32k"])
    assert flags.problem_of(flags.problem).name == "translate_enfr"


@pytest.fixture
def t2t_dir(tmp_path):
    """An output_dir of tensor2tensor; files that are not read are empty."""
    folder = tmp_path / "T2T's train"
    folder.mkdir()
    for name in ("model.ckpt-900.index", "model.ckpt-1000.index", "model.ckpt-1000.data-00000-of-00001"):
        (folder / name).touch()
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1000"\n')
    (folder / "hparams.json").write_text('{"symbol_modality_num_shards": 16}')
    (folder / "flags.txt").write_text("--problem=translate_ende_wmt32k\n--model=transformer\n")
    (folder / "vocab.translate_ende_wmt32k.32768.subwords").touch()
    return folder


def proposed_import(main, arguments, capsys):
    """Words of the import command that an error proposes."""
    name = f"t2t-{main.run.__module__.rpartition('.')[2].replace('_', '-')}"
    assert main([name, *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return shlex.split(line[line.index("Import it: ") + 11 : line.rindex("; then give ")])


@pytest.mark.parametrize(
    ("main", "flags"),
    [
        (trainer.main, ["--problem=translate_ende", "--hparams_set=tiny", "--output_dir={}"]),
        (decoder.main, ["--output_dir={}"]),
        (decoder.main, ["--output_dir=elsewhere", "--checkpoint_path={}/model.ckpt-1000"]),
        (decoder.main, ["--output_dir=elsewhere", "--checkpoint_path={}/model.ckpt-1000.index"]),
        (eval_command.main, ["--output_dir={}"]),
        (eval_command.main, ["--output_dir=elsewhere", "--checkpoint_path={}"]),
        (exporter.main, ["--output_dir={}"]),
        (exporter.main, ["--output_dir=elsewhere", "--checkpoint_path={}"]),
        (avg_all.main, ["--output_dir={}"]),
        (avg_all.main, ["--model_dir={}"]),
        (translate_all.main, ["--model_dir={}", "--source=x"]),
        (attention.main, ["--output_dir={}", "--input=x"]),
        (back_translate.main, ["--model_dir={}", "--mono=x", "--corpus_dir=y"]),
        (distill.main, ["--teacher={}", "--hparams_set=student_tiny"]),
    ],
)
def test_a_folder_of_t2t_gets_the_import_proposed(t2t_dir, main, flags, capsys):
    words = proposed_import(main, [flag.format(t2t_dir) for flag in flags], capsys)
    checkpoint = next(flag for flag in flags if "{}" in flag).partition("=")[2].format(t2t_dir)
    assert words == [
        "t2t-import-checkpoint",
        f"--checkpoint={checkpoint.removesuffix('.index')}",
        f"--output_dir={t2t_dir}_imported",
    ]
    assert import_checkpoint.main.parse(words), "it takes these flags"


def test_the_import_names_what_the_folder_lacks(t2t_dir, tmp_path, capsys):
    for name in ("checkpoint", "flags.txt"):
        (t2t_dir / name).unlink()
    data = tmp_path / "data"
    data.mkdir()
    vocabulary = next(t2t_dir.glob("vocab.*"))
    moved = vocabulary.rename(data / vocabulary.name)
    flags = [f"--output_dir={t2t_dir}", "--problem=translate_ende_wmt32k", f"--data_dir={data}"]
    assert proposed_import(decoder.main, flags, capsys)[1:] == [
        f"--checkpoint={t2t_dir / 'model.ckpt-1000'}",
        f"--output_dir={t2t_dir}_imported",
        "--problem=translate_ende",
        f"--vocab_file={moved}",
    ]
    (t2t_dir / "flags.txt").write_text(f"--problem=translate_ende_wmt32k\n--data_dir={data}\n")
    assert len(proposed_import(decoder.main, flags, capsys)) == 3, "flags.txt says the rest"
    moved.unlink()
    assert (
        proposed_import(decoder.main, flags, capsys)[-1]
        == "--vocab_file=T2T_DATA_DIR/vocab.PROBLEM.SIZE.subwords"
    )


def test_t2ts_hparams_without_a_checkpoint(tmp_path, capsys):
    (tmp_path / "hparams.json").write_text('{"symbol_modality_num_shards": 16}')
    arguments = ["--problem=translate_ende", "--hparams_set=tiny", f"--output_dir={tmp_path}"]
    assert trainer.main(["t2t-trainer", *arguments]) == 1
    assert f"{tmp_path}: its hparams.json is tensor2tensor's, but there is no" in capsys.readouterr().err


def test_a_folder_of_this_project_is_not_t2ts(model):
    out = model()
    (out / "model.ckpt-1000.index").touch()
    assert parsed(f"--output_dir={out}").open_model().path == out
    assert HParams.load(out) is not None
