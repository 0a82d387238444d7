"""Each way of decoding gives the answers of the contract, in `decoding/*.json`; README.md tells more."""

import dataclasses
import json
import sys
from importlib.util import find_spec

import pytest

from t2t_revival import DecodeHParams
from tests.contract import decoding
from tests.contract.decoding import CASES, JSONL, PIECES, SUBWORDS, TREES, differences
from tests.support.backend_process import run_with_backend

pytestmark = pytest.mark.slow
PYTHON, DECODER = "python", "decoder"
ROUNDED = {"bfloat16": 0.02}  # tolerances of scores by precision; processors round differently


VARIANTS = {  # cases that a pull request need not run, since others are near
    PIECES: [
        "alpha_negative",
        "long",
        "small_batches",
        "cold_samples",
        "no_repeat_greedy",
        "all_guards",
        "mbr_samples",
    ],
    SUBWORDS: ["early", "no_repeat", "coverage", "mbr", "sentences"],
    TREES: ["early"],
}


def rows():
    """Each case by Python and by the command; a pull request needs one of them."""
    for model, cases in CASES.items():
        for number, (name, case) in enumerate(cases.items()):
            ways = [DECODER] if case.ensemble else [PYTHON, DECODER]
            for place, way in enumerate(ways):
                nightly = name in VARIANTS[model] or (len(ways) > 1 and place != number % 2)
                marks = [pytest.mark.nightly] * nightly
                yield pytest.param(model, name, way, marks=marks, id=f"{model}-{name}-{way}")


@pytest.mark.parametrize(("model", "name", "way"), rows())
def test_answers(model, name, way, tmp_path):
    case = CASES[model][name]
    folder = decoding.folder_of(model)
    if way == PYTHON:
        found = decoding.by_python(model, case, folder)
    else:
        found = decoding.by_decoder(model, case, folder, tmp_path, JSONL)
    expected = decoding.expectations(model)[name]
    if case.precision == "float32":
        assert not list(differences(expected, found))
    else:
        check_rounded(expected, found, ROUNDED[case.precision])


def check_rounded(expected, found, tolerance):
    """Checks that all lines but two have the same texts, and these nearly the same scores."""
    texts = [[[one.get("text") for one in outputs] for outputs in side] for side in (expected, found)]
    same = [number for number, pair in enumerate(zip(*texts, strict=True)) if pair[0] == pair[1]]
    assert len(same) >= len(expected) - 2
    near = ([side[number] for number in same] for side in (expected, found))
    assert not list(differences(*near, tolerance))


@pytest.mark.parametrize(
    ("model", "name", "more"),
    [
        (PIECES, "usual", ""),
        (PIECES, "alignments", ",write_beam_scores=True"),
        (PIECES, "targets", ""),
        (SUBWORDS, "at_least", ",write_beam_scores=True"),
        (TREES, "wide", ""),
    ],
)
def test_lines_of_text(model, name, more, tmp_path):
    case = CASES[model][name]
    if case.targets:
        case = decoding.Case(targets=case.targets)
    case = dataclasses.replace(case, options=case.options + more)
    *found, last = decoding.by_decoder(model, case, decoding.folder_of(model), tmp_path)
    options = DecodeHParams.parse(case.options)
    width = options.outputs * (1 + bool(more) + bool(options.alignments))
    assert last == ""
    for outputs, line in zip(decoding.expectations(model)[name], found, strict=True):
        cells = [
            cell for output in outputs for cell in cells_of(output, bool(more), bool(options.alignments))
        ]
        columns = line.split("\t")
        for cell, column in zip(cells, columns, strict=False):
            assert column == cell if isinstance(cell, str) else float(column) == cell
        assert len(columns) == (width if outputs[0].get("text") or width == 1 else len(cells)) or case.targets


def cells_of(output, scores, links):
    if "log_prob" in output:
        return [pytest.approx(output["log_prob"], rel=decoding.TOLERANCE)]
    cells = [output["text"].replace("\t", " ") if scores or links else output["text"]]
    cells += [pytest.approx(output["score"], abs=0.00501)] * scores  # two digits
    return cells + [" ".join(f"{source}-{target}" for source, target in output.get("alignment", ()))] * links


@pytest.mark.skipif(not find_spec("jax"), reason="JAX is not installed")
@pytest.mark.parametrize(
    "names",
    [
        (f"{PIECES}/early", f"{SUBWORDS}/usual"),
        pytest.param((f"{PIECES}/greedy", f"{PIECES}/wide", f"{TREES}/free"), marks=pytest.mark.nightly),
    ],
)
def test_jax(names, tmp_path):
    command = [sys.executable, "-m", "tests.contract.decoding", str(tmp_path / "answers"), *names]
    done = run_with_backend(command, "jax")
    assert done.returncode == 0, done.stderr
    answers = json.loads((tmp_path / "answers").read_text())
    for name, found in answers.items():
        model, _, case = name.partition("/")
        assert not list(differences(decoding.expectations(model)[case], found))


@pytest.mark.skipif(not find_spec("ctranslate2"), reason="CTranslate2 is not installed")
@pytest.mark.parametrize(("model", "name"), [(PIECES, "greedy"), (SUBWORDS, "greedy"), (SUBWORDS, "targets")])
def test_ctranslate2(model, name, tmp_path):
    """Its scores differ by up to 1.5%, and its rule for the end of a beam."""
    folder = decoding.copied(model, tmp_path)
    found = decoding.by_python(model, CASES[model][name], folder, engine="ctranslate2")
    check_rounded(decoding.expectations(model)[name], found, ROUNDED["bfloat16"])
