"""Tags before lines: in Python, in the graph of an export, and those that a model lacks."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from t2t_revival import DecodeHParams, T2TError, Translator, registry
from t2t_revival.data.vocabulary.sentencepiece import EOS, Vocabulary
from t2t_revival.data.vocabulary.text_encoder import tagged
from t2t_revival.decoding.lines.preprocessor import known_tags
from t2t_revival.serving.export import export
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.module import ServingModule
from tests.support.exported import make_translator

TEXT = [f"the {noun} sees {number} houses" for noun in ("dog", "cat") for number in range(9)]
LINES = ["the dog sees 3 houses", " ", "<2de> the cat"]
IN_TAGS = ["<2de> the dog sees 3 houses", " ", "<2de> the cat"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "v.spm"
    return Vocabulary.train(TEXT, path, 300, ["<2de> ", "<2fr> "])


def translator(vocabulary, **options):
    return make_translator(vocabulary, DecodeHParams(beam_size=2, extra_length=4, **options))


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


@pytest.fixture(scope="module")
def module(vocabulary):
    return ServingModule(translator(vocabulary))


OPTIONS = {"beam_size": 2, "alpha": 0.6, "extra_length": 4, "n": 1}


@pytest.mark.parametrize("tags", ["<2de>", ["<2de>"], ["<2fr>", "<2de>", ""]])
def test_calls_of_an_export_choose_a_tag_for_all_lines_or_for_each(module, vocabulary, tags):
    of_lines = tags * (3 // len(tags)) if isinstance(tags, list) else [tags] * 3
    inputs = [tagged([line], tag)[0] if tag else line for line, tag in zip(LINES, of_lines, strict=True)]
    outputs = module.translate_with_options(LINES, **OPTIONS, tag=tags)["outputs"].numpy()[:, 0]
    assert [text.decode() for text in outputs] == translator(vocabulary).translate(inputs)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("<2xx>", "tag must be empty or one of <2de>, <2fr>"),
        (["<2de>", "<2fr>"], "tag must be a scalar, or have one value for each line"),
    ],
)
def test_calls_with_a_wrong_tag(module, tags, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        module.translate_with_options(LINES, **OPTIONS, tag=tags)


@pytest.mark.nightly
@pytest.mark.slow
def test_servers_know_that_a_tag_may_be_missing(vocabulary, tmp_path):
    version = export(translator(vocabulary), tmp_path, "many")
    saved = SavedModel.FromString((version / "saved_model.pb").read_bytes())
    signature = saved.meta_graphs[0].signature_def["translate_with_options"]
    assert {*signature.inputs} == {"inputs", *OPTIONS, "tag"}
    assert tf.make_ndarray(signature.defaults["tag"]).item() == b""
    options = {name: [value] * len(IN_TAGS) for name, value in OPTIONS.items()}
    exported, expected = FolderModel(version), translator(vocabulary).translate(IN_TAGS)
    for inputs in {"inputs": IN_TAGS}, {"inputs": LINES, "tag": ["<2de>"] * len(LINES)}:
        outputs = exported.predict("translate_with_options", {**inputs, **options})["outputs"]
        assert [texts[0].decode() for texts in outputs] == expected


def test_brackets_of_a_parser_are_no_tags(vocabulary):
    model = translator(vocabulary).model
    parser = Translator(model, vocabulary, problem=registry.problem("parse_wsj"))
    assert known_tags(parser.vocabularies, parser.problem) == []
    assert known_tags(parser.vocabularies, None) == ["<2de>", "<2fr>"]
    with pytest.raises(T2TError, match="tag=<2de> is none of the model's tags: none"):
        Translator(model, vocabulary, DecodeHParams(tag="<2de>"), problem=parser.problem)


def test_a_tag_that_the_vocabulary_lacks(vocabulary):
    with pytest.raises(T2TError, match="tag=<2xx> is none of the model's tags: <2de>, <2fr>"):
        translator(vocabulary, tag="<2xx>")


def test_a_tag_is_not_for_lines_of_a_split(vocabulary):
    with pytest.raises(T2TError, match="tag=<2de> is for lines of your own"):
        translator(vocabulary, tag="<2de>").nbest(["the dog"], preprocessed=True)


def test_many_languages_need_a_tag_before_each_line(vocabulary):
    problem = registry.problem("translate_many")
    many = Translator(translator(vocabulary).model, vocabulary, max_length=30, problem=problem)
    for line in ("the dog", "<2xx> the dog"):
        with pytest.raises(T2TError, match=r"the dog' begins with none of the model's tags, <2de>, <2fr>: "):
            many.translate(["<2de> the cat", line])
    assert len(many.translate(["<2de> the cat", ""])) == 2
