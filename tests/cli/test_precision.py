"""`--precision` of the commands that decode with TensorFlow."""

import csv

import pytest

from t2t_revival import Translator, registry
from t2t_revival.cli import eval as eval_command
from t2t_revival.model_folder import Run


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_each_checkpoint_is_decoded_in_the_precision_and_its_loss_is_in_float32(
    out, precision, capsys, write_checkpoint
):
    write_checkpoint(out, 9)
    command = ["t2t-eval", f"--output_dir={out}"]
    assert eval_command.main([*command, f"--precision={precision}"]) == 0
    pairs = list(registry.problem("translate_ende").references("dev", Run.load(out).data_dir))
    for step in (7, 9):
        translator = Translator.load(out, str(out / f"model.ckpt-{step}.npz"), precision=precision)
        (outputs,) = (out / "eval-dev").glob(f"{step}-*.txt")
        assert outputs.read_text(encoding="utf-8") == "".join(
            f"{line}\n" for line in translator.translate([source for source, _ in pairs])
        )
    assert eval_command.main([*command, "--eval_bleu_sentences=0"]) == 0
    assert capsys.readouterr().err.count("scoring ") == 4, "in float32, it is another evaluation"
    with (out / "eval-dev.csv").open(newline="") as file:
        losses = [(row["step"], row["loss"]) for row in csv.DictReader(file)]
    assert len(losses) == 4
    assert len(set(losses)) == 2
