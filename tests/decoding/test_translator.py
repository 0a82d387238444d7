import warnings

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import DecodeHParams, LineConstraints, T2TError, Transformer, Translation, Translator
from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.lines.preprocessor import Truncation
from tests.support.exported import make_translator
from tests.support.forked import in_child

LINES = [
    "the dog sees 3 houses .",
    "",
    "cat",
    " \t ",
    "der cat sieht the dog sees 7 houses",
    "dog dog",
    "ß 👩‍👧",
]
OPTIONS = DecodeHParams(beam_size=3, extra_length=5, batch_size=40)


@pytest.fixture(scope="module")
def translator(vocabulary):
    return make_translator(vocabulary, OPTIONS)


def same(found, expected):
    """Equal outputs; scores may differ by float32 rounding, which depends on the shape of a batch."""
    assert [[t.text for t in outputs] for outputs in found] == [
        [t.text for t in outputs] for outputs in expected
    ]
    for outputs, others in zip(found, expected, strict=True):
        np.testing.assert_allclose([t.score for t in outputs], [t.score for t in others], rtol=1e-4)


def test_streams_change_nothing(translator):
    num_parallel_batches = Translator(
        translator.model, translator.vocabulary, OPTIONS, max_length=30, config=EngineConfig(parallel=3)
    )
    same(num_parallel_batches.nbest(LINES * 5), translator.nbest(LINES) * 5)


def test_lines_without_content_give_empty_lines(translator):
    assert (
        translator.nbest(["", "  ", "\t", "\n", "\u200b", "\ufeff", "\u00ad \u2060"], n=2)
        == [[Translation("", 0.0)]] * 7
    )
    assert translator.translate([]) == []


def test_outputs_are_sorted_and_as_many_as_asked_for(translator):
    for outputs in translator.nbest(["cat", "the dog"], n=3):
        assert len(outputs) == 3
        assert [t.score for t in outputs] == sorted((t.score for t in outputs), reverse=True)
    with pytest.raises(T2TError, match="beam_size=3"):
        translator.nbest(["cat"], n=4)


def test_a_long_line_is_cut_and_named(translator):
    cuts = []
    long = "dog " * 40
    outputs = translator.nbest(["cat", long], on_truncation=cuts.append)
    tokens = len(translator.vocabulary.encode(long)) + 1
    assert cuts == [Truncation(2, tokens, 30)]
    assert str(cuts[0]) == f"line 2: {tokens} tokens, truncated to the first 30 (hparams: max_length)"
    kept = translator.vocabulary.decode(translator.vocabulary.encode(long)[:29])
    same(outputs[1:], translator.nbest([kept]))
    with pytest.warns(UserWarning, match="line 2"):
        translator.translate(["cat", long])


def test_the_one_who_calls_translate_may_be_told_of_cuts(translator, recwarn):
    cuts = []
    translator.translate("dog " * 40, on_truncation=cuts.append)
    translator.translate(["cat", "dog " * 40], on_truncation=cuts.append)
    assert [cut.number for cut in cuts] == [1, 2]
    assert not recwarn.list


def test_too_little_memory_is_said_in_one_line(translator, monkeypatch):
    def fail(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[...]")

    monkeypatch.setattr(Transformer, "start_decoding", fail)
    other = Translator(translator.model, translator.vocabulary, OPTIONS)
    with pytest.raises(T2TError, match=r"out of memory: lower batch_size .* or beam_size"):
        other.translate("cat")


def test_a_line_of_just_max_length_is_whole(translator):
    text = translator.vocabulary.decode(translator.vocabulary.encode("dog " * 40)[:29])
    assert len(translator.vocabulary.encode(text)) == 29
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator.translate([text])


def test_progress_ends_with_all(translator):
    seen = []
    list(translator.iterate(LINES, on_progress=seen.append))
    assert len(seen) > 1
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[-1].done, seen[-1].total, seen[-1].share) == (len(LINES), len(LINES), 1.0)


def test_a_lone_surrogate_is_refused_by_its_line(translator):
    with pytest.raises(T2TError, match="line 2"):
        translator.translate(["cat", "a\ud800b"])


def test_no_line_end_comes_out(translator, monkeypatch):
    monkeypatch.setattr(type(translator.vocabulary), "decode", lambda self, ids: "a\nb\r\nc")
    assert translator.translate(["one\ntwo"]) == ["a b  c"]


def test_weights_that_are_no_numbers_give_one_output_of_no_probability(translator):
    weights = translator.model.get_weights()
    translator.model.set_weights([np.full_like(w, np.nan) for w in weights])
    try:
        assert translator.nbest(["cat"]) == [[Translation("", -np.inf)]]
    finally:
        translator.model.set_weights(weights)


@pytest.mark.parametrize(
    ("lines", "prefixes", "said"),
    [
        (["cat", " "], ["", "der"], "line 12: a prefix without a source"),
        (["cat", "cat"], ["", "dog " * 40], r"line 12: the output has \d+ tokens, more than .* = 35"),
        (["cat", "cat"], ["", "a\ud800b"], "line 12: not valid Unicode: it has a lone surrogate"),
        (["cat", "cat"], ["der"], "1 prefixes for 2 lines"),
    ],
)
def test_prefixes_that_cannot_be_are_refused_by_their_line(translator, lines, prefixes, said):
    with pytest.raises(T2TError, match=said):
        translator.nbest(lines, prefixes=prefixes, first_line=11)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ((" ", "der"), "line 12: no source"),
        (("cat", "dog " * 40), "line 12: .* give a larger extra_length"),
        (("cat", "a\ud800b"), "line 12: not valid Unicode: it has a lone surrogate"),
    ],
)
def test_pairs_that_cannot_be_scored_are_refused_by_their_line(translator, pair, said):
    with pytest.raises(T2TError, match=said):
        translator.score([("cat", "der"), pair], first_line=11)


def test_a_source_that_is_cut_is_scored_as_it_is_decoded(translator):
    cuts = []
    translator.score([("dog " * 40, "dog")], on_truncation=cuts.append)
    assert [cut.number for cut in cuts] == [1]


def test_a_single_string_is_a_line(translator):
    line = LINES[0]
    same(translator.nbest(line, n=2), translator.nbest([line], n=2))
    assert translator.translate(np.str_(line)) == translator.translate([line])[0]


@pytest.mark.parametrize("method", ["translate", "nbest"])
def test_a_line_that_is_no_string_is_named(translator, method):
    call = getattr(translator, method)
    with pytest.raises(T2TError, match=r"^line 2: nan is not a string"):
        call([LINES[0], float("nan")])
    with pytest.raises(T2TError, match=r"^lines: .*: give a list$"):
        call(b"dog")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"prefixes": "d"}, "prefixes: 'd' is of type str: give a list"),
        ({"prefixes": [float("nan")]}, "line 1: prefixes: nan is not a string"),
        ({"constraints": ["dog"]}, "line 1: constraints: 'dog' is not LineConstraints or None"),
        ({"constraints": LineConstraints(("dog",))}, "constraints: .* is of type LineConstraints"),
        ({"n": "2"}, "n='2' must be between 1 and beam_size=3"),
    ],
)
def test_other_arguments_of_wrong_types(translator, settings, fault):
    with pytest.raises(T2TError, match=fault):
        translator.nbest(["dog"], **settings)


def test_no_prefix_is_none_or_empty(translator):
    expected = translator.translate(["dog", "cat"])
    found = translator.nbest(["dog", "cat"], 1, prefixes=[None, ""], constraints=iter([None, None]))
    assert [outputs[0].text for outputs in found] == expected


def test_phrases_in_one_string_are_not_taken_apart():
    with pytest.raises(T2TError, match="phrases: 'dog' is of type str: give a list"):
        LineConstraints("dog")
    assert LineConstraints(["dog"], iter(["cat"])) == LineConstraints(("dog",), ("cat",))


def test_pairs_that_are_none_are_named(translator):
    with pytest.raises(T2TError, match=r"^line 2: .* is not a pair of strings: give \(source, output\)$"):
        translator.score([("dog", "cat"), ("a", None)])
    with pytest.raises(T2TError, match="line 1: None is not a string"):
        translator.encode(None)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"output_dir": None}, "output_dir=None is not a path"),
        ({"precision": "fp16"}, "precision=fp16 must be float32 or bfloat16 or int8"),
        ({"num_parallel_batches": "2"}, "num_parallel_batches='2' must be an integer, at least 1"),
    ],
)
def test_arguments_of_load(tmp_path, arguments, fault):
    with pytest.raises(T2TError, match=fault):
        Translator.load(**{"output_dir": tmp_path, **arguments})


def test_a_forked_process_has_an_error_and_does_not_hang(translator):
    expected = translator.translate(LINES)
    for use in (
        lambda: translator.translate(LINES),
        lambda: translator.score([("dog", "cat")]),
        lambda: translator.best_ids([5, EOS]),
    ):
        assert in_child(use).startswith(
            "error: the model was loaded before this process was forked, and would hang"
        )
    assert translator.translate(LINES) == expected
