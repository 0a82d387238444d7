"""A model that writes from right to left is trained, decodes exactly, and reranks another model's outputs."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from t2t_revival.cli import decoder, rerank, trainer
from t2t_revival.training.run import load_hparams

pytestmark = pytest.mark.slow

HPARAMS = (
    "num_hidden_layers=2,hidden_size=32,filter_size=64,num_heads=4,batch_size=512,effective_batch_size=512,"
    "max_length=64,learning_rate_warmup_steps=100,learning_rate_constant=1.0,average_checkpoints=1,"
    "layer_prepostprocess_dropout=0.0"
)
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


def decode(root: Path, model: Path, output: str, options: str) -> Path:
    """Decodes dev; returns the file."""
    flags = f"--output_dir={model}", f"--decode_from_file={root / 'corpus' / 'dev.en'}"
    to_file = f"--decode_to_file={root / output}", f"--decode_hparams={options}"
    assert decoder.main(["t2t-decoder", *flags, *to_file]) == 0
    return root / output


def test_it_learns_to_write_backwards_and_reranks(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backwards = train(root, "backwards", 250, ",reverse_target=True")
    assert load_hparams(backwards).reverse_target
    dev = root / "corpus" / "dev.de"
    assert decode(root, backwards, "backwards.de", "").read_text() == dev.read_text()

    forwards = train(root, "forwards", 55)
    how = "return_beams=True,write_beam_scores=True,beam_size=8"
    nbest = decode(root, forwards, "dev.nbest", how)
    flags = f"--nbest={nbest}", f"--source={root / 'corpus' / 'dev.en'}", f"--scorers={backwards}"
    weights = root / "rerank.json"
    assert (
        rerank.main(["t2t-rerank", *flags, "--tune", f"--reference={dev}", f"--weights_file={weights}"]) == 0
    )
    found = json.loads(weights.read_text())
    assert found["bleu_after"] > found["bleu_before"] + 1
    by_scorer = list(found["weights"].values())[1]
    assert by_scorer > 0
    capsys.readouterr()

    assert (
        trainer.main(
            [
                "t2t-trainer",
                f"--output_dir={forwards}",
                "--problem=translate_ende",
                "--hparams_set=tiny",
                f"--data_dir={root / 'data'}",
                f"--hparams={HPARAMS},train_steps=500,reverse_target=True",
            ]
        )
        == 1
    )
    assert "holds a model with reverse_target=False, not True: give another" in capsys.readouterr().err
