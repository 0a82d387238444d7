"""Packages of Argos Translate: what it reads of them translates as the engine of CTranslate2 does."""

import json
import zipfile

import pytest
import sentencepiece

from t2t_revival import HParams, T2TError, Transformer, Translator, registry
from t2t_revival.addons.argos_format import write_argos
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary

ABOUT = "Trained with care."
SIZES = {"num_hidden_layers": 1, "hidden_size": 16, "filter_size": 24, "num_heads": 2}
LINES = ["The old dog sleeps.", "Two dogs run in the park."]


@pytest.fixture
def translator(vocabulary):
    model = Transformer(HParams(**SIZES), vocabulary.size)
    return Translator(model, vocabulary, problem=registry.problem("translate_fi_en"))


@pytest.mark.slow
def test_a_package(translator, tmp_path):
    """Argos Translate cuts lines by the SentencePiece model, translates, and joins the pieces."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    write_argos(translator, tmp_path / "written", "none", ABOUT)
    (package,) = (tmp_path / "written").iterdir()
    assert package.name == "translate-fi_en-1_0.argosmodel"
    with zipfile.ZipFile(package) as file:
        file.extractall(tmp_path)
    folder = tmp_path / "translate-fi_en-1_0"
    metadata = json.loads((folder / "metadata.json").read_text())
    assert (metadata["from_code"], metadata["to_code"]) == ("fi", "en")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    sources = [pieces.encode(line, out_type=str) for line in LINES]
    model = ctranslate2.Translator(str(folder / "model"))
    found = model.translate_batch(sources, beam_size=1, max_decoding_length=10)
    expected = model.translate_batch(
        [
            [translator.vocabulary.pieces[token] for token in translator.vocabulary.encode(line)]
            for line in LINES
        ],
        beam_size=1,
        max_decoding_length=10,
    )
    assert [one.hypotheses for one in found] == [one.hypotheses for one in expected]
    write_argos(translator, tmp_path / "again", "none", ABOUT)
    assert (tmp_path / "again" / package.name).read_bytes() == package.read_bytes()


def test_what_it_cannot_hold_is_refused(translator, vocabulary, subwords_file, tmp_path):
    subwords = SubwordVocabulary(subwords_file)
    for other, message in (
        (Translator(translator.model, vocabulary), "has the model's languages: give --t2t_usr_dir"),
        (Translator(Transformer(HParams(**SIZES), subwords.size), subwords), "one SentencePiece vocabulary"),
    ):
        with pytest.raises(T2TError, match=message):
            write_argos(other, tmp_path / "written", "none", ABOUT)
    assert not (tmp_path / "written").exists()
