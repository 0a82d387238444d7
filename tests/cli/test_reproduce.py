"""`t2t-reproduce`: its flags and its errors."""

import pytest

from t2t_revival.cli.reproduce import MAKERS, main
from t2t_revival.utils import checked_json


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "no table or figure is named: give --table=1, 2, 3 or 4, or --figure=3, 4 or 5"),
        (["--table=7"], "table 7 cannot be reproduced"),
        (["--figure=1"], "figure 1 cannot be reproduced"),
        (["--table=3", "--scale=cpu"], "--data_source is missing: a folder with train.en"),
        (["--figure=3", "--scale=cpu"], "--data_source is missing"),
        (["--table=1,2", "--scale=cpu"], "--data_source is missing"),
        (["--table=4"], "--treebank is missing: a treebank's folder"),
        (["--table=3,4", "--data_source=sample"], "--treebank is missing"),
        (["--table=3", "--rows=table3_a_h2", "--data_source=sample"], "unknown row 'table3_a_h2'"),
        (["--table=2", "--models=large"], "unknown model 'large'"),
        (["--table=2", "--rows=big"], "--rows is for table 3 only"),
        (
            ["--table=4", "--treebank=sample", "--gold_share=0.5"],
            "--gold_share needs --auto_trees",
        ),
        (
            ["--table=1", "--norun"],
            "sizes were not measured on this device: leave out --norun to measure them",
        ),
        (["--table=3", "--norun"], "base: no run in"),
        (["--table=4", "--norun"], "parsing: no run in"),
    ],
)
def test_wrong_input_is_one_line(flags, message, capsys, tmp_path) -> None:
    folder = tmp_path / "new"
    assert main(["t2t-reproduce", f"--output_dir={folder}", *flags]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("t2t-reproduce: error: ")
    assert message in error
    assert not folder.exists()


def test_all_of_the_papers_results_are_there() -> None:
    assert set(MAKERS) == {*(f"table {n}" for n in (1, 2, 3, 4)), *(f"figure {n}" for n in (3, 4, 5))}


def test_an_unwritable_folder_is_said_before_anything_runs(capsys, tmp_path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    assert main(["t2t-reproduce", "--table=3", "--data_source=sample", f"--output_dir={place}"]) == 1
    assert f"cannot write {place}: Not a directory" in capsys.readouterr().err


def test_a_folder_keeps_its_precision(capsys, tmp_path) -> None:
    checked_json.save(tmp_path / "settings.json", {"precision": "mixed_bfloat16"})
    command = ["t2t-reproduce", "--table=3", "--norun", f"--output_dir={tmp_path}"]
    assert main([*command, "--precision=float32"]) == 1
    assert f"{tmp_path} was started with --precision=mixed_bfloat16" in capsys.readouterr().err
    for again in ([], ["--precision=mixed_bfloat16"]):
        assert main([*command, *again]) == 1
        assert "base: no run in" in capsys.readouterr().err
