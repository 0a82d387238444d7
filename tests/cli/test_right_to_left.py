"""A model that writes from right to left is trained, and decodes exactly."""

from itertools import product

import pytest

from t2t_revival.cli import decoder
from tests.cli import trainer_command

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
def root(tmp_path_factory):
    """A folder with a corpus of a few patterns."""
    root = tmp_path_factory.mktemp("right_to_left")
    (root / "corpus").mkdir()
    for split, pairs in (("train", PAIRS * 3), ("dev", PAIRS[::5])):
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in pairs)
            (root / "corpus" / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return root


def train(root, name, steps, changes=""):
    """Trains a model; returns its output_dir."""
    made = f"--data_source={root / 'corpus'}", "--vocab_size=330"
    hparams = f"{HPARAMS},train_steps={steps}{changes}"
    assert trainer_command.train(root / "data", root / name, *made, hparams=hparams) == 0
    return root / name


def decode(root, model, output, *more):
    """Decodes dev; returns the file."""
    files = f"--decode_from_file={root / 'corpus' / 'dev.en'}", f"--decode_to_file={root / output}"
    assert decoder.main(["t2t-decoder", f"--output_dir={model}", *files, *more]) == 0
    return root / output


@pytest.fixture(scope="module")
def backwards(root):
    """A model that writes from right to left."""
    return train(root, "backwards", 700, ",reverse_target=True")


@pytest.mark.parametrize("engine", ["tensorflow", "ctranslate2"])
def test_it_decodes_exactly(root, backwards, engine):
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    found = decode(root, backwards, f"{engine}.de", f"--engine={engine}")
    assert found.read_text() == (root / "corpus" / "dev.de").read_text()
