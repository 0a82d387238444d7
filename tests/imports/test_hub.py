"""Models of the Hugging Face Hub, from a cache of it; without one and without a network, an error."""

import time

import pytest
from huggingface_hub import constants

from t2t_revival import T2TError, Translator
from tests.support.commands import run
from tests.support.marian_models import LINES, write_marian_mt

NAME, REVISION = "hf:someone/opus-mt-en-de", "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The hub's cache, with a model in it; and a cache for imported models."""
    cache = tmp_path / "hub"
    repository = cache / "models--someone--opus-mt-en-de"
    write_marian_mt(repository / "snapshots" / REVISION)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return repository / "snapshots" / REVISION


def test_a_model_is_imported_once(hub, tmp_path):
    outputs = Translator.load(NAME).translate(LINES)
    made = tmp_path / "cache" / "t2t_revival" / "someone--opus-mt-en-de" / f"{REVISION}-1"
    time_of = (made / "run.json").stat().st_mtime_ns
    assert Translator.load(f"{NAME}@{REVISION}").translate(LINES) == outputs
    assert (made / "run.json").stat().st_mtime_ns == time_of
    assert [path.name for path in made.parent.iterdir()] == [f"{REVISION}-1"]
    run("t2t-import-checkpoint", f"--checkpoint={NAME}", f"--output_dir={tmp_path / 'out'}")
    assert Translator.load(tmp_path / "out").translate(LINES) == outputs


def test_what_is_not_there_is_an_error_soon(hub, monkeypatch):
    """The hub of this test has no address."""
    monkeypatch.setattr(constants, "ENDPOINT", "http://hub.invalid")
    (hub / "vocab.json").unlink()
    began = time.monotonic()
    for name in (NAME, "hf:someone/other"):
        with pytest.raises(T2TError, match=r"not in the cache of the hub, .*, and the hub does not answer"):
            Translator.load(name)
    assert time.monotonic() - began < 40
    for name in ("hf:opus", "hf:a/b/c", "hf:"):
        with pytest.raises(T2TError, match="not a name of the hub, such as hf:Helsinki-NLP/opus-mt-en-de"):
            Translator.load(name)
