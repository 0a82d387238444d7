"""Phrases that outputs of exported models must or must not have: their outputs are those of `Translator`."""

import re
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import DecodeHParams, LineConstraints, T2TError
from t2t_revival.addons.lexical.constraints import fit
from t2t_revival.addons.lexical.packed_tables import unpack
from t2t_revival.addons.lexical.tables import pack, tables_of
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.serving.export import export
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedTranslator
from t2t_revival.serving.signatures import WITH_TABLES
from tests.support.exported import make_translator

TEXT = [
    f"the {noun} sees {number} houses, and der {noun} sieht (nicht) 犬猫 ."
    for noun in ("dog", "dogs", "cat", "doghouse")
    for number in range(9)
]
LINES = ["the dog sees 3 houses .", "cat", "", "der cat sieht the dog sees 7 houses", "dog dog"]
WORDS = ["dog", "cat", "the dog", "houses, and", "(nicht)", "7", "zoo", "犬犬猫", "dog dog", "犬", "bye bye"]
OPTIONS = DecodeHParams(beam_size=3, extra_length=25, return_beams=True, max_length_ratio=24.0)


@pytest.fixture(scope="module", params=[pytest.param("sentencepiece", marks=pytest.mark.nightly), "subwords"])
def models(request, tmp_path_factory):
    """A translator, and the client of its export."""
    folder = tmp_path_factory.mktemp("phrases")
    if request.param == "subwords":
        vocabulary = SubwordVocabulary.build_from_generator(TEXT, 100)
    else:
        vocabulary = Vocabulary.train(TEXT, folder / "v.spm", 330)
    translator = make_translator(vocabulary, OPTIONS, max_length=40)
    model = FolderModel(export(translator, folder, "m"))
    yield translator, ServedTranslator(model, replace(OPTIONS, max_length_ratio=0.0), as_exported=False)
    model.close()


def check(models, constraints, lines=LINES):
    translator, served = models
    expected = translator.nbest(lines, constraints=constraints)
    found = served.nbest(lines, constraints=constraints)
    for outputs, others in zip(found, expected, strict=True):
        assert [(one.text, one.missing, one.present) for one in outputs] == [
            (one.text, one.missing, one.present) for one in others
        ]
        np.testing.assert_allclose([one.score for one in outputs], [one.score for one in others], rtol=1e-4)
    return expected


@pytest.mark.slow
def test_outputs_are_those_of_the_translator(models):
    """Words of outputs are avoided, and then words of the new outputs too, beside phrases."""
    rng, constraints = np.random.default_rng(1), [LineConstraints()] * len(LINES)
    for number in range(4):
        rows = check(models, constraints)
        words = [re.findall(r"\w+", " ".join(one.text for one in row))[:: number + 1][:3] for row in rows]
        wanted = [tuple(rng.choice(WORDS, number).tolist()) for _ in LINES]
        constraints = [
            LineConstraints(phrases, tuple(sorted({*own} - {*" ".join(phrases).split()})))
            for phrases, own in zip(wanted, words, strict=True)
        ]
        constraints[number] = None


@pytest.mark.slow
def test_phrases_share_words_before_the_last_ones_are_left_out(models):
    long = tuple(f"{word} dog" if number % 2 else f"dog {word}" for number, word in enumerate(WORDS * 3))
    outputs = check(models, [LineConstraints(long)], LINES[:1])
    assert outputs[0][0].missing


@pytest.mark.slow
def test_faults_name_the_line(models):
    _, served = models
    with pytest.raises(T2TError, match=r"line 2: the phrase .* has .* tokens, and the output may have"):
        served.nbest(["cat", "dog"], constraints=[None, LineConstraints(("zoo " * 90 + "zoo",))])


@pytest.mark.slow
def test_tables_of_other_sizes_are_one_batch(models):
    """Each sentence's own tables, which differ in phrases, states and tokens."""
    _, served = models
    spelling = served.description.spelling
    given = [LineConstraints(("cat",)), LineConstraints(("dog", "houses, and"), ("the",))]
    packed = [pack(tables_of([fit(constraints, spelling, 25)], [25])) for constraints in given]
    together = unpack(tf.constant([text for (text,) in packed]))
    for row, (text,) in enumerate(packed):
        alone = unpack(tf.constant([text]))
        phrases, most = alone.costs.shape[1], together.costs.shape[1]
        for name in ("costs", "required", "forbidden"):
            own = getattr(together, name)[row]
            np.testing.assert_array_equal(own[:phrases], getattr(alone, name)[0])
        states = together.gains.shape[1] // most
        gains = np.reshape(together.gains[row], [most, states])[:phrases, : alone.gains.shape[1] // phrases]
        np.testing.assert_array_equal(np.ravel(gains), alone.gains[0])


@pytest.mark.slow
@pytest.mark.parametrize("tables", ["", "AAAA", "AQAAAP///38BAAAA", "?"])
def test_tables_that_are_none(models, tables):
    _, served = models
    given = {"beam_size": [2], "alpha": [0.6], "extra_length": [5], "n": [1], "tables": [tables]}
    with pytest.raises(T2TError, match=r"tables are not those of a client|[Bb]ase64|base 64"):
        served.model.predict(WITH_TABLES, {"inputs": ["cat"], **given})
