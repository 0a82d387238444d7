"""Models of the Hugging Face Hub, from a cache of it; without one and without a network, an error."""

import time

import pytest
from huggingface_hub import constants

from t2t_revival import T2TError, Translator
from tests.support.commands import run
from tests.support.hub import REVISION, in_cache
from tests.support.m2m100_models import write_multilingual
from tests.support.marian_models import LINES, write_marian_mt

NAME = "hf:someone/opus-mt-en-de"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The hub's cache, with a model in it; and a cache for imported models."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_marian_mt(in_cache(tmp_path / "hub", "someone/opus-mt-en-de"))


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


def test_models_of_many_languages(hub, tmp_path):
    write_multilingual(in_cache(tmp_path / "hub", "someone/m2m100"))
    with pytest.raises(T2TError, match="many languages: import it first, with --problem, by t2t-import-"):
        Translator.load("hf:someone/m2m100")
    flags = "--checkpoint=hf:someone/m2m100", "--problem=translate_en_de", f"--output_dir={tmp_path / 'out'}"
    run("t2t-import-checkpoint", *flags)
    assert len(Translator.load(tmp_path / "out").translate(LINES)) == len(LINES)
