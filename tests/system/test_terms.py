"""Terms of outputs, checked by the word alignment: t2t-decoder, Python and an exported model."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

from t2t_revival import Terminology, Translator
from tests.support.commands import run

pytestmark = pytest.mark.slow
TEXTS = [
    "The old dog sleeps.",
    "A small cat sees the red house.",
    "",
    "The king reads a book.",
    "We see the old tree.",
]


@pytest.mark.nightly
def test_terms_are_checked_by_the_word_alignment(
    sample_model: Path, sample_data: Path, tmp_path: Path
) -> None:
    model, lines = tmp_path / "model", [*TEXTS, "The dog sees the cat.", "The cat sees the dog."]
    shutil.copytree(sample_model, model)
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    (tmp_path / "terms").write_text("dog\tKatze\nking\tWald\nbook\tGarten\n", encoding="utf-8")
    flags = [f"--output_dir={model}", f"--decode_from_file={tmp_path / 'in'}", "--output_format=jsonl"]
    with_terms = [*flags, f"--terminology={tmp_path / 'terms'}"]
    free = run("t2t-decoder", *flags).stdout.splitlines()

    unchecked = run("t2t-decoder", *with_terms)
    assert unchecked.stderr.count("terms are not checked") == 1
    assert "t2t-align --choose_heads" in unchecked.stderr
    assert "unaligned" not in unchecked.stdout

    terms = Terminology({"dog": "Katze", "king": "Wald", "book": "Garten"})
    constraints = [terms.constraints(line) for line in lines]
    with pytest.warns(UserWarning, match="^terms are not checked"):
        Translator.load(model).nbest(lines[:1], constraints=constraints[:1])

    run("t2t-align", f"--output_dir={model}", f"--data_dir={sample_data}", "--choose_heads")
    checked, aligned = (
        run("t2t-decoder", *with_terms, *more) for more in ([], ["--decode_hparams=alignments=pharaoh"])
    )
    assert "nobody" not in checked.stderr
    found = [json.loads(line) for line in checked.stdout.splitlines()]
    links = [json.loads(line) for line in aligned.stdout.splitlines()]
    assert [checked.stdout.splitlines()[row] for row in (1, 2, 4)] == [free[row] for row in (1, 2, 4)]
    assert [one["text"] for one in found] == [one["text"] for one in links]
    translator = Translator.load(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = [outputs[0] for outputs in translator.nbest(lines, constraints=constraints)]
    assert [one.text for one in own] == [one["text"] for one in found]
    assert [dict(one.unaligned) for one in own] == [one.get("unaligned", {}) for one in found]
    assert not any(one.details for one in own)
    wrong = 0
    dog = {"dog": "Katze"}
    for number, terms in ((1, dog), (4, {"king": "Wald", "book": "Garten"}), (6, dog), (7, dog)):
        output = links[number - 1]
        sources = [lines[number - 1][word["start"] : word["end"]] for word in output["source_words"]]
        targets = [word["text"].strip(".,") for word in output["words"]]
        pairs = {(sources[one].strip("."), targets[other]) for one, other in output["alignment"]}
        expected = {term: phrase for term, phrase in terms.items() if (term, phrase) not in pairs}
        assert found[number - 1].get("unaligned", {}) == output.get("unaligned", {}) == expected
        for term, phrase in expected.items():
            note = f"in, line {number}: '{phrase}' is in the output, but seems not to translate '{term}'"
            assert note in checked.stderr
        wrong += len(expected)
    assert checked.stderr.count("seems not to translate") == wrong > 0

    typed = run(
        "t2t-decoder", f"--output_dir={model}", "--decode_interactive", with_terms[-1], stdin=lines[6]
    )
    assert found[6]["text"] in typed.stdout
    run("t2t-exporter", f"--output_dir={model}", f"--export_dir={tmp_path / 'export'}")
    served = run("t2t-query-server", f"--saved_model={tmp_path / 'export'}", *with_terms[1:])
    assert "terms are not checked" not in served.stderr
    for line, one in zip(served.stdout.splitlines(), found, strict=True):
        assert json.loads(line) == one | {"score": pytest.approx(one["score"], abs=1e-4)}
