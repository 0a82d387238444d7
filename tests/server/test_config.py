"""The models of a server, as a YAML file lists them."""

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


def test_the_name_of_an_export(tmp_path):
    assert exported_name(tmp_path / "talks") == "talks"
    (tmp_path / "models.config").write_text(
        'model_config_list {\n  config {\n    name: "translate_ende"\n  }\n}\n'
    )
    assert exported_name(tmp_path) == exported_name(tmp_path / "17") == "translate_ende"
