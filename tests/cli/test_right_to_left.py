"""A model that writes from right to left is trained, decodes exactly, and reranks another model's outputs."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from t2t_revival.cli import align, attention, decoder, exporter, rerank, trainer

pytestmark = pytest.mark.slow

HPARAMS = (
    "num_hidden_layers=2,hidden_size=32,filter_size=64,num_heads=4,batch_size=512,effective_batch_size=512,"
    "max_length=64,learning_rate_warmup_steps=100,learning_rate_constant=1.0,average_checkpoints=1,"
    "layer_prepostprocess_dropout=0.0"
)
N_BEST = "return_beams=True,write_beam_scores=True,beam_size=8"
DEV = {"source": "dev.en", "reference": "dev.de"}
ANIMALS = {"dog": "Hund", "cat": "Kater", "bear": "Bär"}
VERBS = {"sees": "sieht", "hears": "hört"}
PAIRS = [
    (
        f"the {one} {verb} the {other} {number}",
        f"{number} : den {ANIMALS[other]} {VERBS[verb]} der {ANIMALS[one]}",
    )
    for one, other, verb, number in product(ANIMALS, ANIMALS, VERBS, range(1, 7))
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of a few patterns."""
    root = tmp_path_factory.mktemp("right_to_left")
    (root / "corpus").mkdir()
    for split, pairs in (("train", PAIRS * 3), ("dev", PAIRS[::5])):
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in pairs)
            (root / "corpus" / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return root


def train(root: Path, name: str, steps: int, changes: str = "") -> Path:
    """Trains a model; returns its output_dir."""
    out = root / name
    arguments = [
        "--problem=translate_ende",
        "--hparams_set=tiny",
        f"--data_source={root / 'corpus'}",
        f"--data_dir={root / 'data'}",
        f"--output_dir={out}",
        "--vocab_size=330",
        "--eval_bleu_sentences=0",
        f"--hparams={HPARAMS},train_steps={steps}{changes}",
    ]
    assert trainer.main(["t2t-trainer", *arguments]) == 0
    return out


def decode(root: Path, model: Path, output: str, *more: str) -> Path:
    """Decodes dev; returns the file."""
    files = f"--decode_from_file={root / 'corpus' / 'dev.en'}", f"--decode_to_file={root / output}"
    assert decoder.main(["t2t-decoder", f"--output_dir={model}", *files, *more]) == 0
    return root / output


@pytest.fixture(scope="module")
def backwards(root: Path) -> Path:
    """A model that writes from right to left."""
    return train(root, "backwards", 400, ",reverse_target=True")


@pytest.mark.parametrize("engine", ["tensorflow", "ctranslate2"])
def test_it_decodes_exactly(root: Path, backwards: Path, engine: str) -> None:
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    found = decode(root, backwards, f"{engine}.de", f"--engine={engine}")
    assert found.read_text() == (root / "corpus" / "dev.de").read_text()


def test_it_reranks_the_outputs_of_a_model_that_writes_from_left_to_right(
    root: Path, backwards: Path
) -> None:
    forwards = train(root, "forwards", 45)
    nbest = decode(root, forwards, "dev.nbest", f"--decode_hparams={N_BEST}")
    source, reference = (f"--{name}={root / 'corpus' / file}" for name, file in DEV.items())
    weights = root / "rerank.json"
    flags = f"--nbest={nbest}", source, reference, f"--scorers={backwards}", f"--weights_file={weights}"
    assert rerank.main(["t2t-rerank", "--tune", *flags]) == 0
    found = json.loads(weights.read_text())
    assert found["bleu_after"] > found["bleu_before"] + 1
    assert list(found["weights"].values())[1] > 0


@pytest.mark.parametrize(
    ("command", "flags", "fault"),
    [
        (exporter, ["--format=ctranslate2"], "CTranslate2's format does not support reverse_target=True"),
        (exporter, ["--format=litert"], "LiteRT's format does not support reverse_target=True"),
        (decoder, ["--decode_from_file=in", "--partial_targets"], "no beginning can be forced"),
        (decoder, ["--decode_from_file=in", "--markup=html"], "leave out alignments and markup"),
        (align, ["--choose_heads"], "leave out alignments and markup"),
        (attention, ["--input=the dog"], "attention is drawn of models that write left to right"),
    ],
)
def test_what_is_refused(
    backwards: Path,
    tmp_path: Path,
    command: Any,
    flags: list[str],
    fault: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("the dog\tder\n")
    assert command.main(["command", f"--output_dir={backwards}", *flags]) == 1
    assert fault in capsys.readouterr().err.splitlines()[-1]


def test_a_training_does_not_turn_round(
    root: Path, backwards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        train(root, "backwards", 410, ",reverse_target=False")
    assert "holds a model with reverse_target=True, not False: give another" in capsys.readouterr().err
