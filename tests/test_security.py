"""Nothing that is loaded runs code, and no name leads out of its folder."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from pathlib import Path

import pytest

from t2t_revival import HParams, T2TError, registration, registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.selection import select_checkpoint
from t2t_revival.cli import exporter
from t2t_revival.cli.bleu import BleuCurves
from t2t_revival.cli.support.command import Parser
from t2t_revival.data.config import DataConfig, DataSpec, Metadata, SplitCounts
from t2t_revival.data.generation import generate
from t2t_revival.data.sources import SampleSource
from t2t_revival.model_folder import Run
from t2t_revival.serving import client
from t2t_revival.serving.export import export
from t2t_revival.serving.folder_model import FolderModel
from tests.support.source_tree import MODULES, parsed

OUTSIDE = ["../../x", "/etc/passwd", "..", "", "a/b", "a\\b", "a\nb", "a\0b", 'a"b']
RUNS_CODE = ("eval", "exec", "load_model", "exec_module", "enable_unsafe_deserialization", "__import__")
DOORS = {
    ("registration.py", "exec_module"),
    ("workers.py", "pickle.loads"),
}  # --t2t_usr_dir; own worker processes


def run_json(out: Path, **changes: object) -> None:
    run = Run("translate_ende", "tiny", "data", "v.spm", "0", {})
    (out / "run.json").write_text(json.dumps({**dataclasses.asdict(run), **changes}))


@pytest.mark.parametrize("field", ["problem", "hparams_set", "vocabulary", "target_vocabulary"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_in_run_json_that_leads_outside_is_refused(tmp_path: Path, field: str, name: str) -> None:
    if field == "target_vocabulary" and not name:  # there is none
        return
    run_json(tmp_path, **{field: name})
    with pytest.raises(T2TError, match=r"run\.json: corrupt, .* is not valid: it becomes part of a file"):
        Run.load(tmp_path)


@pytest.mark.parametrize("name", [name for name in OUTSIDE if name])
def test_a_name_in_metadata_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    whole = Metadata("p", "s", "en", "de", {"train": 1}, "v.spm", "0", 3, {"train": SplitCounts()})
    path = tmp_path / "p.meta.json"
    for change in (
        {"vocab_file": name},
        {"target_vocab_file": name},
        {"name": name},
        {"pairs": {name: 1}},
        {"splits": {name: SplitCounts()}},
    ):
        dataclasses.replace(whole, **change).save(path)
        with pytest.raises(T2TError, match=r"p\.meta\.json: corrupt \(.* is not a valid file name\)"):
            Metadata.load(path)
    whole.save(path)
    assert Metadata.load(path) == whole


@pytest.mark.parametrize("number", ["/../../x", "7", 7.0, None, True])
def test_the_step_in_a_checkpoint_of_which_names_are_made_is_a_number(tmp_path: Path, number: object) -> None:
    path = tmp_path / "model.ckpt-7.npz"
    checkpoints.save(path, {}, {"step": number})
    with pytest.raises(T2TError, match=r"model\.ckpt-7\.npz: not a checkpoint of format 1"):
        select_checkpoint(tmp_path, str(path))


@pytest.mark.parametrize("suffix", ["/../../x", "..", "/etc/passwd"])
def test_the_note_of_the_last_scored_step_stays_in_its_folder(tmp_path: Path, suffix: str) -> None:
    assert BleuCurves(tmp_path, suffix).note.parent == tmp_path


@pytest.mark.parametrize("split", ["../dev", "/dev", "", "a\nb"])
def test_the_splits_of_a_users_source_stay_in_data_dir(tmp_path: Path, split: str) -> None:
    class Outside(SampleSource):
        def splits(self) -> tuple[str, ...]:
            return ("train", split)

        def count(self, split: str) -> int:
            return 20

    spec = DataSpec(
        "p",
        DataConfig("sample", 300),
        "sample",
        lambda name, tmp: Outside("en", "de"),
        lambda kind, pairs: 300,
    )
    with pytest.raises(T2TError, match=f"split {re.escape(repr(split))}: not a valid name"):
        generate(spec, tmp_path / "a" / "data", None, None)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("name", ['v".spm', "v\n.spm", "v\\.spm"])
def test_a_given_vocabulary_whose_copy_could_not_be_named_is_refused_at_once(
    tmp_path: Path, name: str
) -> None:
    given = tmp_path / name
    given.touch()
    made = SampleSource("en", "de")
    spec = DataSpec(
        "p",
        DataConfig("sample", vocab_file=(given,)),
        "sample",
        lambda name, tmp: made,
        lambda kind, pairs: 0,
    )
    with pytest.raises(T2TError, match=r"a copy cannot have the name .*: rename the file"):
        generate(spec, tmp_path / "data", None, None)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["A/b", "../B", "A\nb"])
def test_a_name_that_a_users_package_registers_stays_a_name(name: str) -> None:
    problem = type(name, (registration.PROBLEMS.get("translate_ende", object),), {})
    with pytest.raises(T2TError, match=r"problem .* not a valid name"):
        registry.register_problem(problem)

    def hparams_set() -> HParams:
        return HParams()

    hparams_set.__name__ = name
    with pytest.raises(T2TError, match=r"hparams set .* not a valid name"):
        registry.register_hparams(hparams_set)


@pytest.mark.parametrize("flag", ["problem", "hparams_set"])
def test_the_default_output_dir_stays_below_its_folder(flag: str) -> None:
    named = {"problem": "translate_ende", "hparams_set": "tiny", flag: "../../x"}
    flags = exporter.main.parse(["t2t-exporter", *(f"--{name}={value}" for name, value in named.items())])
    with pytest.raises(T2TError, match=r"'\.\./\.\./x' is not a valid name of a problem or hparams set"):
        flags.run_dir()


@pytest.mark.parametrize("name", ["/../", "../../v1/other", "..", "a?b#c", "a%2fb"])
def test_a_servable_name_stays_one_part_of_the_address(name: str) -> None:
    import requests

    model = client.RestModel("http://localhost:8501", name, 1, 0)
    path = requests.Request("POST", model._url).prepare().path_url
    assert path.startswith("/v1/models/")
    assert path.endswith(":predict")
    assert path.count("/") == 3
    assert not set("?#") & set(path)


@pytest.mark.parametrize("name", ["../x", "x: {y: z}", "a b", "", 'x"\n  y: "z'])
def test_a_model_is_exported_under_no_name_that_could_change_its_configuration(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(T2TError, match="is not a valid name of a served model"):
        export(None, tmp_path / "export", name)  # type: ignore[arg-type]
    assert not (tmp_path / "export").exists()


def test_the_help_says_which_flag_runs_code() -> None:
    table = Parser(exporter.main.flags).table
    assert "code is executed, and no other flag executes code" in table["t2t_usr_dir"].help


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["WriteFile", "EagerPyFunc"])
def test_a_saved_model_that_reaches_outside_is_refused_before_it_runs(tmp_path: Path, kind: str) -> None:
    import tensorflow as tf

    mark = tmp_path / "ran"

    def touch(lines: tf.Tensor) -> tf.Tensor:
        mark.touch()
        return lines

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
        def translate(self, inputs: tf.Tensor) -> dict:
            if kind == "WriteFile":
                tf.io.write_file(str(mark), "ran")
                return {"outputs": inputs}
            return {"outputs": tf.py_function(touch, [inputs], tf.string)}

    module = Module()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures={"serving_default": module.translate})
    with pytest.raises(T2TError, match=rf"{tmp_path / '1'}: contains the unsafe operation {kind}"):
        FolderModel(tmp_path)
    assert not mark.exists()


def test_nothing_in_this_package_runs_what_it_reads() -> None:
    """No pickles, no `eval`, no Keras files; but for the doors, of which one is the user's own flag."""
    found = set()
    for path in MODULES.values():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name.split(".")[-1] in RUNS_CODE or name.startswith(
                    ("pickle.load", "marshal.", "shelve.")
                ):
                    found.add((path.name, name if "pickle" in name else name.split(".")[-1]))
                for argument in node.keywords:
                    given = (argument.arg, ast.unparse(argument.value))
                    assert given not in (("allow_pickle", "True"), ("safe_mode", "False")), path
    assert found == DOORS
