"""`t2t-reproduce`: its flags and its errors."""

from t2t_revival.cli.reproduce import MAKERS, main
from t2t_revival.utils import checked_json


def test_all_of_the_papers_results_are_there():
    assert set(MAKERS) == {*(f"table {n}" for n in (1, 2, 3, 4)), *(f"figure {n}" for n in (3, 4, 5))}


def test_a_folder_keeps_its_precision(capsys, tmp_path):
    checked_json.save(tmp_path / "settings.json", {"precision": "mixed_bfloat16"})
    command = ["t2t-reproduce", "--table=3", "--norun", f"--output_dir={tmp_path}"]
    assert main([*command, "--precision=float32"]) == 1
    assert f"{tmp_path} was started with --precision=mixed_bfloat16" in capsys.readouterr().err
    for again in ([], ["--precision=mixed_bfloat16"]):
        assert main([*command, *again]) == 1
        assert "base: no run in" in capsys.readouterr().err
