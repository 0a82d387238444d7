"""`--precision` of the commands that decode with TensorFlow."""

import csv

import pytest

from t2t_revival import Translator, registry
from t2t_revival.cli import eval as eval_command
from t2t_revival.training.run import Run
from tests.support.decoder_command import DECODE, decode

LINES = ["the dog", "sees 3 houses"]
PAIR = "the dog", "der Hund"


@pytest.mark.slow
def test_a_file_and_scores_in_int8(out, tmp_path, capsys):
    in_float32, in_int8 = (
        Translator.load(out, decode_hparams=f"{DECODE},write_beam_scores=True", precision=precision)
        for precision in ("float32", "int8")
    )
    (tmp_path / "in").write_text("\n".join(LINES) + "\n")
    scored = f"--decode_hparams={DECODE},write_beam_scores=True"
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}", scored, "--precision=int8") == 0
    found = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert found == [[best.text, f"{best.score:.2f}"] for (best,) in in_int8.nbest(LINES)]
    assert found != [[best.text, f"{best.score:.2f}"] for (best,) in in_float32.nbest(LINES)]

    (tmp_path / "pairs").write_text("\t".join(PAIR) + "\n")
    assert decode(out, f"--score_file={tmp_path / 'pairs'}", "--precision=int8") == 0
    ((expected,), (other,)) = (translator.score([PAIR]) for translator in (in_int8, in_float32))
    assert float(capsys.readouterr().out) == pytest.approx(expected.log_prob, abs=1e-4)
    assert expected.log_prob != pytest.approx(other.log_prob, abs=1e-3)


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
