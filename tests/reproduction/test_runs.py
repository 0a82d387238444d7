"""Trainings of a reproduction: missing ones are run, finished ones are kept."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_revival import HParams, T2TError, registry
from t2t_revival.model_folder import Run
from t2t_revival.reproduction.runs import TRANSLATION, Runs, dev_perplexity
from t2t_revival.reproduction.scales import CPU
from t2t_revival.reproduction.table3 import make_tables


class FakeCommands:
    """Records calls of commands, and writes the files that the commands would write."""

    def __init__(self, fail_at: int = -1) -> None:
        self.asked: list[tuple[str, dict]] = []
        self.fail_at = fail_at

    def __call__(self, name: str, flags) -> None:
        self.asked.append((name, dict(flags)))
        if len(self.asked) - 1 == self.fail_at:
            raise KeyboardInterrupt
        if name == "t2t-trainer":
            overrides = flags.get("hparams", "")
            steps = registry.hparams(flags["hparams_set"], overrides).train_steps
            flags["output_dir"].mkdir(parents=True, exist_ok=True)
            rows = f"step,target_tokens,seconds,loss,perplexity,accuracy\n{steps // 2},1,1,3,20,0.3\n"
            (flags["output_dir"] / "dev.csv").write_text(rows + f"{steps},2,2,2,8,0.5\n")
            HParams.save(registry.hparams(flags["hparams_set"], overrides), flags["output_dir"])
        if name == "t2t-decoder":
            flags["decode_to_file"].write_text("ein Hund\neine Katze\n")
            flags["decode_to_file"].with_suffix(".targets").write_text("ein Hund\nzwei Katzen\n")

    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


def test_outputs_are_of_the_last_checkpoint_or_of_the_average(tmp_path) -> None:
    command = FakeCommands()
    runs = Runs(tmp_path, CPU, command, "sample")
    place = runs.train_translator("base")
    plain, average = runs.decode(place, "dev", average=False), runs.decode(place, "dev", average=True)
    assert plain.lines() == (["ein Hund", "eine Katze"], ["ein Hund", "zwei Katzen"])
    assert plain.outputs != average.outputs
    assert command.names()[1:] == ["t2t-decoder", "t2t-avg-all", "t2t-decoder"]
    checkpoints = [flags["checkpoint"] for name, flags in command.asked if name == "t2t-decoder"]
    assert checkpoints == [place / "model.ckpt-1666.npz", place / "averaged" / "model.ckpt-1666.npz"]
    runs.decode(place, "dev", average=True)
    assert len(command.asked) == 4


def test_what_is_missing_is_an_error_where_nothing_is_to_be_run(tmp_path) -> None:
    runs = Runs(tmp_path, CPU, FakeCommands(), "sample", train_missing=False)
    with pytest.raises(T2TError, match=r"base: no run in .*base: leave out --norun to train it"):
        runs.train_translator("base")
    place = runs.output_dir(TRANSLATION, "base")
    place.mkdir(parents=True)
    (place / "dev.csv").write_text("step,target_tokens,perplexity\n830,1,20\n")
    with pytest.raises(T2TError, match=r"base: only 830 of 1,666 updates in .*base"):
        runs.train_translator("base")
    with pytest.raises(T2TError, match=r"dev-model.ckpt-830.outputs is missing: leave out --norun"):
        runs.decode(place, "dev", average=False)


def test_a_training_that_ends_early_is_an_error(tmp_path) -> None:
    def stopped(name: str, flags) -> None:
        flags["output_dir"].mkdir(parents=True)

    with pytest.raises(T2TError, match="base stopped before its last update: the same command resumes it"):
        Runs(tmp_path, CPU, stopped, "sample").train_translator("base")


def test_a_run_of_other_settings_is_no_row(tmp_path) -> None:
    runs = Runs(tmp_path, CPU, FakeCommands(), "sample")
    runs.train_translator("base")
    other = CPU.adapt(registry.hparams("base")).replace(batch_size=4096)
    other.save(runs.output_dir(TRANSLATION, "base"))
    with pytest.raises(T2TError, match=r"base was trained with batch_size=4096, not 2048: use another"):
        runs.train_translator("base")


def test_a_run_measured_on_another_dev_split_is_no_row(tmp_path, monkeypatch) -> None:
    problem = registry.problem(TRANSLATION)
    vocabulary = SimpleNamespace(fingerprint="v")
    vocabularies = SimpleNamespace(inputs=vocabulary)
    data = SimpleNamespace(vocabularies=vocabularies, fingerprint=lambda split: "aaaaaaaa")
    for name, value in (("has_data", True), ("open", data)):
        monkeypatch.setattr(type(problem), name, lambda *args, value=value: value)
    monkeypatch.setattr(Run, "load", lambda place: vocabulary)
    runs = Runs(tmp_path, CPU, FakeCommands(), "sample")
    path = runs.train_translator("base") / "dev.csv"
    header, *rows = path.read_text().splitlines()
    for fingerprint in ("aaaaaaaa", "bbbbbbbb"):
        path.write_text("\n".join([f"{header},data", *(f"{row},{fingerprint}" for row in rows)]))
        if fingerprint == "aaaaaaaa":
            assert runs.train_translator("base") == path.parent
    with pytest.raises(
        T2TError, match=r"base was trained with dev split=bbbbbbbb, not aaaaaaaa: use another"
    ):
        runs.train_translator("base")


def test_a_training_killed_before_its_last_evaluation_is_brought_to_its_end(tmp_path) -> None:
    command = FakeCommands()
    runs = Runs(tmp_path, CPU, command, "sample")
    place = runs.train_translator("base")
    rows = (place / "dev.csv").read_text().splitlines()
    (place / "dev.csv").write_text("\n".join([*rows[:-1], rows[-1][:6]]))  # cut short
    (place / "model.ckpt-1666.npz").write_bytes(b"")
    assert runs.train_translator("base") == place
    assert command.names() == ["t2t-trainer", "t2t-trainer"]
    assert dev_perplexity(place) == 8


def test_what_is_finished_stays_in_the_table(tmp_path) -> None:
    command = FakeCommands()
    runs = Runs(tmp_path, CPU, command, "sample")
    for name in ("base", "table3_d_ls0"):
        assert not runs.is_finished(name, TRANSLATION, "dev", average=False)
        place = runs.train_translator(name)
        assert not runs.is_finished(name, TRANSLATION, "dev", average=False), "not decoded"
        runs.decode(place, "dev", average=False)
    said: list[str] = []
    with pytest.raises(T2TError, match="no trained model in"):  # the models are pretended
        make_tables(runs, ["table3_a_h1"], said.append)
    rows = [line.rpartition(" ")[2] for line in said if line.startswith("table 3")]
    assert rows == ["base", "table3_a_h1", "table3_d_ls0"]


def test_an_interrupted_table_goes_on_at_its_row(tmp_path) -> None:
    rows = ["table3_a_h1", "table3_d_ls0"]
    first = FakeCommands(fail_at=4)
    with pytest.raises(KeyboardInterrupt):
        make_tables(Runs(tmp_path, CPU, first, "sample"), rows, print)
    assert first.names() == ["t2t-datagen", "t2t-trainer", "t2t-decoder", "t2t-trainer", "t2t-decoder"]
    second = FakeCommands(fail_at=4)
    with pytest.raises(KeyboardInterrupt):
        make_tables(Runs(tmp_path, CPU, second, "sample"), [*rows, "big"], print)
    asked = [(name, Path(flags.get("output_dir", "")).name) for name, flags in second.asked[1:]]
    assert asked == [
        ("t2t-decoder", "table3_a_h1"),
        ("t2t-trainer", "table3_d_ls0"),
        ("t2t-decoder", "table3_d_ls0"),
        ("t2t-trainer", "big"),
    ]
