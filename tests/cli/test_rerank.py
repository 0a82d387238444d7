"""`t2t-rerank`: weights are tuned and applied, scores are those of each model, and what it refuses."""

import dataclasses
import json
import shutil

import pytest

from t2t_revival import Translator
from t2t_revival.cli import rerank
from t2t_revival.metrics.bleu import sacrebleu_score
from t2t_revival.model_folder import Run
from tests.cli.conftest import SMALL
from tests.support.command_lines import last_of_each

SOURCES = ["the dog sees dev1 houses", "", "the dog sees dev2 houses", "houses"]
REFERENCES = ["der Hund sieht dev1 Häuser", "", "der Hund sieht dev2 Häuser", "die Häuser"]
NBEST = [
    "der Hund\t-0.5\tder Hund sieht dev1 Häuser\t-0.7\t\t-inf",
    "\t0.00",
    "die Hunde sehen\t-0.1\tder Hund\t-0.5\tder Hund sieht dev2 Häuser\t-0.7",
    "Häuser\t-0.3",
]
BEST = [REFERENCES[0], "", REFERENCES[2], "Häuser"]


@pytest.fixture
def scorers(out, tmp_path, write_checkpoint):
    """A model of the same direction, one of the other, and one that writes from right to left."""
    folders = [out]
    for name, problem, changes in (
        ("back", "translate_ende_rev", {}),
        ("right", "translate_ende", {"reverse_target": True}),
    ):
        folder = shutil.copytree(out, tmp_path / name, ignore=shutil.ignore_patterns("*.npz"))
        dataclasses.replace(Run.load(out), problem=problem).save(folder)
        SMALL.replace(**changes).save(folder)
        write_checkpoint(folder, 8, **changes)
        folders.append(folder)
    return folders


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, lines in (("nbest", NBEST), ("in.en", SOURCES), ("in.de", REFERENCES), ("short", ["a"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def run(scorers, *arguments):
    named = ["--nbest=nbest", "--source=in.en", f"--scorers={','.join(map(str, scorers))}"]
    return rerank.main(last_of_each(["t2t-rerank", *named, *arguments]))


@pytest.mark.slow
def test_weights_are_tuned_and_applied(scorers, files, capsys):
    assert run(scorers, "--tune", "--reference=in.de") == 0
    said = capsys.readouterr()
    stored = json.loads((files / "rerank.json").read_text())
    assert (
        stored["bleu_before"]
        < stored["bleu_after"]
        == pytest.approx(sacrebleu_score(BEST, REFERENCES).score, abs=0.01)
    )
    names = list(stored["weights"])
    assert (names[0], names[-1], len(names)) == ("score", "length", 5)
    assert names[2].startswith("translate_ende_rev, model.ckpt-8.npz with weights ")
    assert f"BLEU {stored['bleu_before']:.2f} before, {stored['bleu_after']:.2f} after, on the 4 " in said.out
    assert f"next: t2t-rerank --nbest=NBEST --source=SOURCE --scorers={scorers[0]}," in said.out
    assert "scoring the source given the output with" in said.err
    assert said.err.count("scoring the output given the source with") == 2

    assert run(scorers[::-1], "--output_file=out.de") == 0, "in any order"
    assert (files / "out.de").read_text(encoding="utf-8").splitlines() == BEST
    following = "next: t2t-bleu --translation=out.de --reference=REFERENCE --target_lang=de"
    assert following in capsys.readouterr().err

    scorers[2].joinpath("model.ckpt-8.npz").rename(scorers[2] / "model.ckpt-9.npz")
    assert run(scorers) == 1
    assert "rerank.json: weights of other models: it lacks 'translate_ende, " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2])
def test_given_weights_choose_by_each_model(scorers, files, number, capsys):
    weights = ",".join("1" if place == number + 1 else "0" for place in range(5))
    assert run(scorers, f"--weights={weights}") == 0
    found = capsys.readouterr().out.splitlines()
    translator = Translator.load(scorers[number])
    for line, (output, row) in enumerate(zip(found, NBEST, strict=True)):
        texts = [text for text in row.split("\t")[::2] if text]
        if len(texts) > 1:
            pairs = [(SOURCES[line], text)[:: -1 if number == 1 else 1] for text in texts]
            scores = [score.log_prob / score.tokens for score in translator.score(pairs)]
            assert output == texts[scores.index(max(scores))]
        else:
            assert output == (texts or [""])[0]
