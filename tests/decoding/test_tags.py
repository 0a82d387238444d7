"""Tags before lines: in Python, in the graph of an export, and those that a model lacks."""

import keras
import pytest

from t2t_revival import registry
from t2t_revival.data.vocabulary.sentencepiece import EOS, Vocabulary
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer
from t2t_revival.serving import served_translator
from t2t_revival.serving.module import ServingModule
from t2t_revival.utils.tags import tagged

TEXT = [f"the {noun} sees {number} houses" for noun in ("dog", "cat") for number in range(9)]
LINES = ["the dog sees 3 houses", " ", "<2de> the cat"]
IN_TAGS = ["<2de> the dog sees 3 houses", " ", "<2de> the cat"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "v.spm"
    return Vocabulary.train(TEXT, path, 300, ["<2de> ", "<2fr> "])


@pytest.fixture(scope="module")
def model(vocabulary):
    keras.utils.set_random_seed(3)
    return Transformer(
        HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2), vocabulary.size
    )


def translator(model, vocabulary, **options):
    options = DecodeHParams(beam_size=2, extra_length=4, **options)
    return Translator(model, vocabulary, options, max_length=30)


def test_a_tag_is_one_id_and_the_line_after_it_is_cut_as_alone(vocabulary):
    assert vocabulary.tags == ["<2de>", "<2fr>"]
    assert vocabulary.encode("<2de> the dog") == [
        vocabulary.pieces.index("<2de>\u2581"),
        *vocabulary.encode("the dog"),
    ]
    assert vocabulary.decode([*vocabulary.encode("<2fr> the dog"), EOS]) == "<2fr> the dog"


def test_lines_get_the_tag_unless_they_are_blank_or_have_it():
    assert tagged(LINES, "<2de>") == IN_TAGS
    assert tagged(LINES, "<2fr>")[2] == "<2fr> <2de> the cat"


def test_the_option_does_what_a_tag_in_the_line_does(model, vocabulary):
    plain, option = translator(model, vocabulary), translator(model, vocabulary, tag="<2de>")
    assert option.translate(LINES) == plain.translate(IN_TAGS) != plain.translate(LINES)
    assert option.encode("the dog") == plain.encode("<2de> the dog")
    assert option.score([("the dog", "dog")]) == plain.score([("<2de> the dog", "dog")])


def test_an_export_has_the_tag_of_its_options(model, vocabulary):
    plain, option = translator(model, vocabulary), translator(model, vocabulary, tag="<2de>")
    module = ServingModule(option)
    outputs = module.translate(LINES)["outputs"].numpy()[:, 0]
    assert [text.decode() for text in outputs] == plain.translate(IN_TAGS)


def test_clients_write_the_tag_before_their_lines(monkeypatch):
    sent = []
    monkeypatch.setattr(served_translator, "query", lambda model, lines, *_: sent.extend(lines) or [])
    options = served_translator.ServedOptions.parse("tag=<2de>", None)
    with pytest.raises(ValueError, match="zip"):  # there are no answers
        served_translator.ServedTranslator(None, options).nbest(LINES)
    assert sent == IN_TAGS


def test_a_tag_that_the_vocabulary_lacks(model, vocabulary):
    with pytest.raises(T2TError, match="tag=<2xx> is none of the model's tags: <2de>, <2fr>"):
        translator(model, vocabulary, tag="<2xx>")
    with pytest.raises(T2TError, match="tag='<2 de>' must not have spaces"):
        DecodeHParams(tag="<2 de>")


def test_a_tag_is_not_for_lines_of_a_split(model, vocabulary):
    with pytest.raises(T2TError, match="tag=<2de> is for lines of your own"):
        translator(model, vocabulary, tag="<2de>").nbest(["the dog"], preprocessed=True)


def test_many_languages_need_a_tag_before_each_line(model, vocabulary):
    problem = registry.problem("translate_many")
    options = DecodeHParams(beam_size=1, extra_length=2)
    many = Translator(model, vocabulary, options, max_length=30, problem=problem)
    for line in ("the dog", "<2xx> the dog"):
        with pytest.raises(T2TError, match=r"the dog' begins with none of the model's tags, <2de>, <2fr>: "):
            many.translate(["<2de> the cat", line])
    assert len(many.translate(["<2de> the cat", ""])) == 2


def test_litert_has_no_tags():
    with pytest.raises(T2TError, match="LiteRT's format has no tag"):
        DecodeHParams(tag="<2de>").check_litert()
