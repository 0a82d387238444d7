"""`t2t-reproduce`: what it asks for, and what it says when that is wrong."""

import pytest

from t2t_revival.cli.reproduce import MAKERS, main


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "say what is to be made: --table=1, 2, 3 or 4, or --figure=3, 4 or 5"),
        (["--table=7"], "there is no table 7 to be made"),
        (["--figure=1"], "there is no figure 1 to be made"),
        (["--table=3", "--scale=cpu"], "--data_source is missing: a folder with train.en"),
        (["--figure=3", "--scale=cpu"], "--data_source is missing"),
        (["--table=4"], "--data_source is missing: a treebank's folder"),
        (["--table=3", "--rows=table3_a_h2", "--data_source=sample"], "unknown row 'table3_a_h2'"),
        (["--table=3", "--norun", "--data_source=sample"], "base: no run in"),
        (["--table=4", "--norun", "--data_source=sample"], "parsing: no run in"),
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
    assert f"cannot write to {place}" in capsys.readouterr().err
