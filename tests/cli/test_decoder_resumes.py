"""An interrupted t2t-decoder keeps what is decoded, and resumes with the same bytes."""

import functools
import os
import signal

import pytest

from t2t_revival import Translator
from t2t_revival.cli import decoder
from t2t_revival.cli.support.messages import ProgressBar

SOURCE = "".join(f"{'the dog sees ' * (number % 4)}{number}\n" for number in range(300)) + "\nthe\n"
SMALL = "beam_size=2,extra_length=3,batch_size=64"


@pytest.fixture
def once(monkeypatch):
    """Compiles a model once for all runs of a test, which decode batch by batch.

    Batches side by side end in an order that is not the same in each run; their number depends on whether
    TensorFlow was in use before.
    """
    load = functools.cache(Translator.load.__func__)

    def cached(*args, on_damaged, **kwargs):
        return load(Translator, *args, **kwargs | {"num_parallel_batches": 1})

    monkeypatch.setattr(Translator, "load", cached)


@pytest.fixture
def stop(monkeypatch):
    """Sets an action for the next runs, called after a number of batches; None removes it."""

    state = {"left": 0, "action": None}
    update = ProgressBar.update

    def counted(bar, done, total, share=None):
        update(bar, done, total, share)
        if share:  # not at the start
            state["left"] -= 1
            if state["action"] and not state["left"]:
                state["action"]()

    def set_to(batches=0, action=None):
        state.update(left=batches, action=action)

    monkeypatch.setattr(ProgressBar, "update", counted)
    return set_to


def interrupt():
    raise KeyboardInterrupt


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def run(out, *flags):
    return decoder.main(["t2t-decoder", f"--output_dir={out}", *map(str, flags)])


@pytest.mark.parametrize(
    ("name", "options", "more"),
    [
        ("decode_from_file", "sampling_method=random,random_seed=3", ["--decode_shards=2", "--worker_id=1"]),
        ("decode_from_file", "return_beams=True,write_beam_scores=True", ["--partial_targets"]),
        ("score_file", "", []),
    ],
)
def test_it_ends_with_the_bytes_of_an_undisturbed_run(out, tmp_path, capsys, once, stop, name, options, more):
    source = SOURCE
    if name == "score_file" or "--partial_targets" in more:
        source = "".join(f"{line or 'the'}\tder Hund\n" for line in SOURCE.splitlines())
    (tmp_path / "in").write_text(source)
    flags = [f"--{name}={tmp_path / 'in'}", f"--decode_hparams={SMALL},{options}".rstrip(","), *more]
    assert run(out, *flags, f"--decode_to_file={tmp_path / 'whole'}") == 0
    suffix = "001" if "--worker_id=1" in more else ""
    whole = (tmp_path / f"whole{suffix}").read_bytes()
    capsys.readouterr()

    parts = []
    for batches, action, status in ((12, interrupt, 130), (36, terminate, 143)):
        stop(batches, action)
        assert run(out, *flags, f"--decode_to_file={tmp_path / 'o'}") == status
        parts.append((tmp_path / f"o{suffix}.part").read_bytes())
        said = capsys.readouterr().err.splitlines()
        assert f"lines are done and kept with {tmp_path / f'o{suffix}.part'}; the same command" in said[-1]
        assert said[-1].startswith("t2t-decoder: error: interrupted; ")
        assert not (tmp_path / f"o{suffix}").exists()
    assert any("resuming" in line for line in said), "the second time"
    stop()
    assert run(out, *flags, f"--decode_to_file={tmp_path / 'o'}") == 0
    assert (tmp_path / f"o{suffix}").read_bytes() == whole
    assert all(whole.startswith(part) and part.count(b"\n") < whole.count(b"\n") for part in parts)
    assert len(parts[1]) > len(parts[0]), "in input order, as they are ready"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", f"o{suffix}", "out", f"whole{suffix}"]


def test_a_split_is_resumed_with_its_bleu(out, tmp_path, capsys, once, stop):
    flags = [
        "--decode_hparams=beam_size=2,extra_length=3,batch_size=16",
        "--dataset_split=train",
        "--log_examples=2",
    ]
    assert run(out, *flags, f"--decode_to_file={tmp_path / 'a.outputs'}") == 0
    expected = capsys.readouterr().out
    stop(5, interrupt)
    assert run(out, *flags, f"--decode_to_file={tmp_path / 'b.outputs'}") == 130
    stop()
    capsys.readouterr()
    assert run(out, *flags, f"--decode_to_file={tmp_path / 'b.outputs'}") == 0
    captured = capsys.readouterr()
    assert "resuming" in captured.err
    assert captured.out == expected.replace(f"{tmp_path / 'a.'}", f"{tmp_path / 'b.'}")
    for kind in ("outputs", "inputs", "targets"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


@pytest.mark.slow
def test_other_text_options_or_weights_start_again(out, tmp_path, capsys, once, stop, write_checkpoint):
    (tmp_path / "in").write_text(SOURCE)
    flags = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}"]
    hparams = f"--decode_hparams={SMALL}"

    def interrupted(*more):
        stop(12, interrupt)
        assert run(out, *flags, *more) == 130
        return capsys.readouterr().err

    assert "starting again" not in interrupted(hparams)
    (tmp_path / "in").write_text(f"the\n{SOURCE}")
    assert "starting again: input=sha256:" in interrupted(hparams)
    write_checkpoint(out, 9)
    said = interrupted(f"{hparams},alpha=0.7", f"--checkpoint_path={out / 'model.ckpt-9.npz'}")
    assert "starting again: checkpoint=model.ckpt-7.npz with weights" in said
    assert "not model.ckpt-9.npz with weights" in said
    assert "alpha=0.6, not 0.7" in said


def test_the_standard_output_gets_lines_as_they_are_ready(out, tmp_path, capsysbinary, once, stop):
    (tmp_path / "in").write_text(SOURCE)
    flags = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_hparams={SMALL}"]
    assert run(out, *flags) == 0
    whole = capsysbinary.readouterr().out
    stop(8, interrupt)
    assert run(out, *flags) == 130
    part = capsysbinary.readouterr().out
    assert part.count(b"\n") > 2
    assert whole.startswith(part)
