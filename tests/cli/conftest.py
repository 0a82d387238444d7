"""A trained model for the commands that use one."""

import re
import shutil

import keras
import pytest

from t2t_revival import HParams, Transformer, registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.cli import exporter
from t2t_revival.model_folder import ModelFolder, Run
from tests.support.copy_task import shared_models
from tests.support.line_corpus import houses, write_pairs

SMALL = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, max_length=30)
VOCAB = 310


def _write_checkpoint(folder, step, data="", **changes):
    keras.utils.set_random_seed(step)
    model = Transformer(SMALL.replace(**changes), VOCAB)
    meta = {"step": step, "data": data} if data else {"step": step}
    checkpoints.save(folder / f"model.ckpt-{step}.npz", checkpoints.model_arrays(model), meta)


def failure(capsys, status):
    """Returns the one line of error of a command that has ended with this status."""
    captured = capsys.readouterr()
    assert status == 1
    (line,) = [line for line in captured.err.splitlines() if line.startswith("t2t-") and ": error: " in line]
    return line


def refused(capsys, status, *parts):
    """Checks that a command ended with one line of error, which has these parts, and nothing else."""
    captured = capsys.readouterr()
    assert (status, captured.out) == (1, "")
    (line,) = [line for line in captured.err.splitlines() if not line.startswith("decoding with")]
    assert re.match("t2t-[a-z-]+: error: ", line)
    for part in parts:
        assert str(part) in line


@pytest.fixture(scope="module")
def models():
    """Models that the trainings of a module share."""
    with shared_models():
        yield


@pytest.fixture
def write_checkpoint():
    """Writes a checkpoint with random weights: (folder, step, fingerprint of data, changes of hparams)."""
    return _write_checkpoint


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A data_dir and an output_dir of a model with random weights, which no test writes to."""
    root = tmp_path_factory.mktemp("trained")
    sizes = {"train": 40, "dev": 5, "test": 4}
    pairs = {split: houses(f"{split}{number}" for number in range(size)) for split, size in sizes.items()}
    corpus, data = write_pairs(root / "corpus", pairs), root / "data"
    problem = registry.problem("translate_ende", data_source=str(corpus), vocab_size=VOCAB)
    problem.generate_data(data)
    vocabulary = problem.open(data).vocabularies.inputs
    name = vocabulary.path.name
    run = Run("translate_ende", "tiny", str(data), name, vocabulary.fingerprint, {"beam_size": 2})
    ModelFolder(root / "out").save(run, SMALL, vocabulary.path)
    assert vocabulary.size == VOCAB
    _write_checkpoint(root / "out", 7)
    made = _contents(root)
    yield root
    assert made.items() <= _contents(root).items(), (
        "a test has changed a file: it should take the copy, `out`"
    )


def _contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def export_dir(trained, tmp_path_factory):
    """An export of `trained`, which no test writes to."""
    folder = tmp_path_factory.mktemp("export")
    assert exporter.main(["t2t-exporter", f"--output_dir={trained / 'out'}", f"--export_dir={folder}"]) == 0
    return folder


@pytest.fixture(scope="module")
def server():
    """A server that answers lines in capitals."""
    from tests.support.model_server import ModelServer, echo

    server = ModelServer(echo)
    yield server
    server.close()


@pytest.fixture
def out(trained, tmp_path):
    """Copy of the output_dir that a test may change."""
    return shutil.copytree(trained / "out", tmp_path / "out")
