"""Constraints of outputs: t2t-decoder, t2t-query-server and an exported model have the same translations."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from t2t_revival import Terminology, Translator
from t2t_revival.addons.lexical.constraints import count
from tests.support.commands import run

pytestmark = pytest.mark.slow
TEXTS = [
    "The old dog sleeps.",
    "A small cat sees the red house.",
    "",
    "The king reads a book.",
    "We see the old tree.",
]


@pytest.fixture(scope="module")
def place(sample_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export of the model, and a link to that."""
    place = tmp_path_factory.mktemp("served")
    (place / "model").symlink_to(sample_model)
    run("t2t-exporter", f"--output_dir={sample_model}", f"--export_dir={place / 'export'}")
    return place


def of_decoder(place: Path, *flags: str) -> list[str]:
    return run("t2t-decoder", f"--output_dir={place / 'model'}", *flags).stdout.split("\n")


def of_query_server(place: Path, *flags: str) -> list[str]:
    return run("t2t-query-server", f"--saved_model={place / 'export'}", *flags).stdout.split("\n")


@pytest.mark.nightly
def test_all_have_the_same_translations(place: Path) -> None:
    (place / "plain").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    free = of_decoder(place, f"--decode_from_file={place / 'plain'}")
    words = [output.rstrip(".").split() for output in free[: len(TEXTS)]]
    wanted = ["kleine", "Wald", "kleine"]
    demanded = {"Katze", "jung", *wanted}
    unwanted = {row: [word for word in words[row] if word not in demanded] for row in (0, 4)}
    assert all(unwanted.values())
    lines: list[dict[str, Any]] = [
        {"text": TEXTS[0], "avoid": unwanted[0][-2:], "constraints": ["Katze"]},
        {"text": TEXTS[1], "terms": {"cat": "Dackel", "red": "grün"}},
        {"text": TEXTS[2], "constraints": ["Katze"]},
        {"text": TEXTS[3]},
        {"text": TEXTS[4], "avoid": sorted({*unwanted[4]})[:3], "constraints": wanted},
    ]
    (place / "json").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    (place / "terms").write_text("old\tjung\nking\tKönigin\n", encoding="utf-8")
    flags = [f"--decode_from_file={place / 'json'}", "--input_format=jsonl"]
    found = of_decoder(place, *flags)
    assert of_query_server(place, *flags) == found
    for name in ("plain", "json"):
        own = [f"--decode_from_file={place / name}", f"--terminology={place / 'terms'}"]
        own += ["--input_format=jsonl"] * (name == "json") + ["--output_format=jsonl"]
        decoded, served = (map(json.loads, of(place, *own)[:-1]) for of in (of_decoder, of_query_server))
        for one, other in zip(decoded, served, strict=True):
            assert other | {"score": 0} == one | {"score": 0}
            assert other["score"] == pytest.approx(one["score"], rel=1e-4)

    assert found[3] == free[3]
    assert found[2] == ""
    assert count("Katze", found[0])
    assert count("Dackel", found[1])
    assert count("kleine", found[4]) >= 2
    assert not any(count(word, found[row]) for row in (0, 4) for word in lines[row]["avoid"])


@pytest.mark.nightly
def test_terms_are_checked_by_the_word_alignment(place: Path, sample_data: Path, tmp_path: Path) -> None:
    model, lines = tmp_path / "model", [*TEXTS, "The dog sees the cat.", "The cat sees the dog."]
    shutil.copytree(place / "model", model)
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    (tmp_path / "terms").write_text("dog\tKatze\nking\tWald\nbook\tGarten\n", encoding="utf-8")
    flags = [f"--output_dir={model}", f"--decode_from_file={tmp_path / 'in'}", "--output_format=jsonl"]
    with_terms = [*flags, f"--terminology={tmp_path / 'terms'}"]
    free = run("t2t-decoder", *flags).stdout.splitlines()

    unchecked = run("t2t-decoder", *with_terms)
    assert unchecked.stderr.count("nobody checks") == 1
    assert "t2t-align --choose_heads" in unchecked.stderr
    assert "unaligned" not in unchecked.stdout

    terms = Terminology({"dog": "Katze", "king": "Wald", "book": "Garten"})
    constraints = [terms.constraints(line) for line in lines]
    with pytest.warns(UserWarning, match="^nobody checks"):
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
    served = run(
        "t2t-query-server",
        f"--saved_model={place / 'export'}",
        f"--decode_from_file={tmp_path / 'in'}",
        with_terms[-1],
    )
    assert served.stderr.count("nobody checks") == 1
