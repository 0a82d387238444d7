"""The models of a server, as a YAML file lists them."""

import pytest

from t2t_revival import T2TError
from t2t_revival.addons.server.config import ModelConfig, exported_name, load_config


def test_models_of_a_file(tmp_path):
    path = tmp_path / "models.yaml"
    path.write_text(
        "models:\n"
        "  - {name: ende, saved_model: ende/export, keep: 2, labels: {stable: 3}, problem: parse_wsj}\n"
        "  - {name: enfr, output_dir: /runs/enfr, checkpoint: best, engine: ctranslate2, precision: int8}\n"
    )
    ende, enfr = load_config(path)
    folder = tmp_path / "ende/export"
    assert ende == ModelConfig("ende", folder, keep=2, labels={"stable": 3}, problem="parse_wsj")
    assert str(enfr.output_dir) == "/runs/enfr"
    assert (enfr.checkpoint, enfr.engine, enfr.precision) == ("best", "ctranslate2", "int8")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("[]", "models is missing or empty"),
        ("[{name: a}]", "model 1: give saved_model, an export_dir, or output_dir"),
        ("[{name: a, saved_model: x, output_dir: y}]", "model 1: give saved_model"),
        ("[{saved_model: x}]", "model 1: name is missing"),
        ("[{name: a/b, saved_model: x}]", "'a/b' is not a valid name of a model"),
        ("[{name: a, saved_modle: x}]", "model 1: unknown key 'saved_modle'"),
        ("[{name: a, saved_model: x}, {name: a, output_dir: y}]", "two models are called a"),
        ("[{name: a, saved_model: x, keep: 0}]", "model 1: keep=0 must be at least 1"),
        ("[{name: a, saved_model: x, labels: {stable: x}}]", "model 1: labels must be texts with the number"),
        ("[{name: a, saved_model: x, labels: 3}]", "model 1: labels is 3"),
        ("[{name: a, saved_model: x, checkpoint: best}]", "model 1: checkpoint is for an output_dir"),
        ("[{name: a, output_dir: x, problem: parse_wsj}]", "model 1: problem is for a saved_model"),
        ("[{name: a, output_dir: x, keep: 2}]", "model 1: keep and labels are for a saved_model"),
        (
            "[{name: a, saved_model: x, engine: ctranslate2}]",
            "model 1: engine=ctranslate2 is for an output_dir",
        ),
        (
            "[{name: a, output_dir: x, engine: pytorch}]",
            "model 1: engine=pytorch must be tensorflow or ctran",
        ),
        ("[{name: a, output_dir: x, precision: int8}]", "model 1: precision=int8 is for engine=ctranslate2"),
        ("[{name: a, output_dir: x, precision: int4}]", "model 1: precision=int4 must be one of float32"),
        ("[x]", "model 1: not a mapping of name, saved_model"),
    ],
)
def test_wrong_files(tmp_path, entries, message):
    path = tmp_path / "models.yaml"
    path.write_text(f"models: {entries}\n")
    with pytest.raises(T2TError) as caught:
        load_config(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"--config={path}: ")


def test_the_name_of_an_export(tmp_path):
    assert exported_name(tmp_path / "talks") == "talks"
    (tmp_path / "models.config").write_text(
        'model_config_list {\n  config {\n    name: "translate_ende"\n  }\n}\n'
    )
    assert exported_name(tmp_path) == exported_name(tmp_path / "17") == "translate_ende"
