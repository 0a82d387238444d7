"""Models that came from M2M100 and NLLB in the formats of exports: as folders of transformers, and others."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from safetensors.numpy import load_file

from t2t_revival import HParams, T2TError, Transformer, Translator
from t2t_revival.addons.argos_format import write_argos
from t2t_revival.addons.formats import FORMATS
from t2t_revival.addons.imports.layers import EMBEDDINGS, SOFTMAX_BIAS, arrays_of
from t2t_revival.addons.imports.m2m100 import Pair, import_folder
from t2t_revival.addons.litert import MODEL as FLATBUFFER
from t2t_revival.addons.litert import write_litert
from t2t_revival.addons.marian_format import MarianParts
from t2t_revival.addons.transformers_format import write_transformers
from t2t_revival.cli import exporter
from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.decoding.capabilities import check_held
from tests.support.doors import Model
from tests.support.exported import asking
from tests.support.m2m100_models import (
    M2M100,
    MODEL,
    NLLB,
    NLLB_LANGUAGES,
    pieces,
    random_weights,
    write_multilingual,
)
from tests.support.marian_models import LINES, ZIELE

PROBLEM = "translate_en_de"
SIZES = {"num_hidden_layers": 1, "hidden_size": 16, "filter_size": 24, "num_heads": 2, **MODEL}
KINDS = {"m2m100": (M2M100, False), "nllb": (NLLB, False), "legacy": (NLLB, True)}
OPTIONS = ["beam_size=1,extra_length=9", "beam_size=4,extra_length=9", "beam_size=3,extra_length=2,alpha=0.6"]


def peaked(kind):
    """Returns weights of large logits, beside which that of padding, 0, is none; outputs may end."""
    weights = random_weights(4 + len(pieces()) + (108 if kind == M2M100 else len(NLLB_LANGUAGES) + 3))
    weights["model.shared.weight"] *= 3
    weights["model.shared.weight"][2] += weights["model.decoder.layer_norm.bias"] * 3
    return weights


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Imports a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    for name, (kind, legacy) in KINDS.items():
        theirs = write_multilingual(folder / "theirs" / name, kind, weights=peaked(kind), legacy=legacy)
        import_folder(theirs, folder / name, Pair(PROBLEM))
    return folder


def back(folder, path):
    """Exports a model and imports it again."""
    write_transformers(Translator.load(folder), path / "back", "")
    import_folder(path / "back", path / "again", Pair(PROBLEM))
    return path / "again"


def arrays(folder):
    """Returns the weights of a model, and the vectors of its pieces."""
    model = Translator.load(folder)
    found = arrays_of(model.model)
    del found[SOFTMAX_BIAS]  # 0, as there is none
    return found, dict(zip(model.vocabularies.inputs.pieces, found.pop(EMBEDDINGS), strict=True))


def test_what_came_from_m2m100_comes_back(out, tmp_path):
    again, theirs = back(out / "m2m100", tmp_path), out / "theirs" / "m2m100"
    weights, found = (load_file(folder / "model.safetensors") for folder in (theirs, tmp_path / "back"))
    assert weights.keys() == found.keys()
    assert [name for name in weights if weights[name].tobytes() != found[name].tobytes()] == []
    for name in ("config.json", "vocab.json", "tokenizer_config.json"):
        known, values = (json.loads((folder / name).read_text()) for folder in (theirs, tmp_path / "back"))
        known.pop("max_position_embeddings", None)
        assert known == {name: values[name] for name in known}
    name = "sentencepiece.bpe.model"
    assert (theirs / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
    generation = json.loads((tmp_path / "back" / "generation_config.json").read_text())
    german = 4 + len(pieces()) + 16
    assert (generation["forced_bos_token_id"], generation["decoder_start_token_id"]) == (german, 2)
    assert (generation["bad_words_ids"], generation["num_beams"]) == ([[1]], 4)
    np.testing.assert_equal(arrays(again), arrays(out / "m2m100"))


@pytest.mark.parametrize("kind", ["m2m100", "nllb"])
@pytest.mark.parametrize("trimmed", [False, True])
def test_rows_that_are_missing_leave_no_gaps(out, tmp_path, kind, trimmed):
    """The languages of NLLB have M2M100's codes; vectors are those of their pieces, byte for byte."""
    folder = out / kind
    if trimmed:
        (tmp_path / "text").write_text("\n".join([LINES[0], ZIELE[0]]))
        folder = tmp_path / "out"
        import_folder(out / "theirs" / kind, folder, Pair(PROBLEM, keep_vocab_of=str(tmp_path / "text")))
    again = back(folder, tmp_path)
    (weights, vectors), (found, others) = arrays(folder), arrays(again)
    np.testing.assert_equal(found, weights)
    named = {"eng_Latn": "__en__", "deu_Latn": "__de__", "fin_Latn": "__fi__", "zho_Hans": "__zh__"}
    known = {
        named.get(piece, piece): vector for piece, vector in vectors.items() if not piece.startswith("<row")
    }
    assert {piece for piece in known if piece not in others} <= {"ace_Arab", "zho_Hant", "<mask>"}
    for piece in known.keys() & others.keys():
        assert known[piece].tobytes() == others[piece].tobytes(), piece
    assert len(others) - len(vectors) <= 100
    pair = [(LINES[0], ZIELE[0])]
    ours, theirs = (Translator.load(each).score(pair)[0].log_prob for each in (folder, again))
    assert theirs == pytest.approx(ours, abs=1e-3)


def test_what_it_cannot_hold_is_refused(out, tmp_path):
    with pytest.raises(T2TError, match=r"NLLB without legacy_behaviour; .* give --format=ctranslate2"):
        write_transformers(Translator.load(out / "legacy"), tmp_path / "legacy", "")
    import_folder(out / "theirs" / "nllb", tmp_path / "out", Pair(PROBLEM, "ace_Arab", "deu_Latn"))
    acehnese = Translator.load(tmp_path / "out")
    with pytest.raises(T2TError, match="no code of its own for the language ace_Arab: give --format=ctran"):
        write_transformers(acehnese, tmp_path / "back", "")
    assert not (tmp_path / "back").exists()
    with pytest.raises(
        T2TError, match=r"Argos Translate's format puts no languages around texts, as .*/vocab"
    ):
        write_argos(acehnese, tmp_path / "argos", "none", "")
    with pytest.raises(T2TError, match="Marian puts no languages around texts"):
        MarianParts.of(acehnese)
    usual = Transformer(HParams(**{**SIZES, "start_token": 0}), acehnese.vocabulary.size)
    with pytest.raises(T2TError, match="transformers' MarianMT puts no languages around texts"):
        write_transformers(Translator(usual, acehnese.vocabulary), tmp_path / "marian", "")


@pytest.mark.parametrize("format", ["marian", "bergamot"])
def test_formats_without_a_start_token_refuse_it(format):
    with pytest.raises(T2TError, match="does not support pos=fairseq, which this model has: it holds"):
        check_held(HParams(**SIZES), FORMATS[format].place)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"ffn_activation": "swish"}, "transformers' M2M100 does not support ffn_activation=swish"),
        ({"start_token": 0}, "transformers' M2M100 does not support start_token=0"),
        ({"pos": "rotary", "start_token": 0}, "transformers' format does not support pos=rotary"),
    ],
)
def test_the_format_says_what_a_model_lacks_of_the_nearest(changes, shown):
    hparams = HParams(**{**SIZES, **changes})
    with pytest.raises(T2TError, match=shown):
        check_held(hparams, FORMATS["transformers"].place_of(hparams))


def texts_and_scores(translator, n):
    return [[(one.text, one.score, one.cut) for one in found] for found in translator.nbest(LINES, n)]


def assert_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert [(text, cut) for text, _, cut in one] == [(text, cut) for text, _, cut in other]
        scores = [[score for _, score, _ in each] for each in (one, other)]
        np.testing.assert_allclose(*scores, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ctranslate2(out, kind):
    """Best outputs, greedy and by beams, from a given beginning too, and scores."""
    pytest.importorskip("ctranslate2")
    for options in OPTIONS:
        ours, theirs = (
            Translator.load(out / kind, decode_hparams=options, engine=engine)
            for engine in ("tensorflow", "ctranslate2")
        )
        assert_close(texts_and_scores(theirs, 1), texts_and_scores(ours, 1))
        begun = [
            [
                (found[0].text, found[0].score, found[0].cut)
                for found in each.nbest(LINES[:2], prefixes=["Das", ""])
            ]
            for each in (theirs, ours)
        ]
        assert_close(*([each] for each in begun))
    pairs = [*zip(LINES, ZIELE, strict=False), (LINES[0], "")]
    found, expected = ([each.log_prob for each in translator.score(pairs)] for translator in (theirs, ours))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_python_that_is_printed_translates(out, tmp_path, kind):
    ctranslate2 = pytest.importorskip("ctranslate2")
    flags = [f"--output_dir={out / kind}", f"--export_dir={tmp_path}", "--format=ctranslate2"]
    with redirect_stdout(StringIO()) as said:
        assert not exporter.main(["t2t-exporter", *flags])
    steps = said.getvalue().partition("next, in Python:\n")[2].replace('"..."', repr(LINES[0]))
    assert re.search(r"target_prefix=\[\['(__de__|deu_Latn)'\]\]", steps)
    with redirect_stdout(StringIO()) as printed:
        import t2t_revival.data.vocabulary.marian

        exec(steps, {"ctranslate2": ctranslate2, "t2t_revival": t2t_revival})
    limit = "extra_length=236"  # of CTranslate2, where an output has 256 tokens at most
    (expected,) = Translator.load(out / kind, decode_hparams=limit).translate([LINES[0]])
    assert printed.getvalue()[: len(expected) // 2] == expected[: len(expected) // 2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_saved_model_and_litert(out, tmp_path, kind):
    import tensorflow as tf

    translator = Translator.load(out / kind, decode_hparams=OPTIONS[1])
    expected = texts_and_scores(translator, 1)
    assert_close(texts_and_scores(asking(Model(translator, heads=None)), 1), expected)
    write_litert(translator, tmp_path / "litert")
    content = (tmp_path / "litert" / FLATBUFFER).read_bytes()
    search = tf.lite.Interpreter(model_content=content).get_signature_runner()
    inputs, targets = translator.vocabularies
    for line, ((text, score, _),) in zip(LINES, expected, strict=True):
        found = search(inputs=np.array([[*inputs.encode(line), EOS]], np.int32))
        assert targets.decode(found["outputs"][0, 0].tolist()) == text
        assert found["scores"][0, 0] == pytest.approx(score, rel=1e-4)
