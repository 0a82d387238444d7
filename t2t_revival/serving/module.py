"""A model with its vocabulary as one TensorFlow graph: strings in, strings out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.hypotheses import NEVER, SearchSettings
from t2t_revival.decoding.options import BOUNDS, LARGEST_ALPHA, LEAST_EXTRA_OF_TREE
from t2t_revival.errors import T2TError
from t2t_revival.serving.quantization import PRECISIONS, Int8Weights

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

SPACE = r"[\s\v\x1c-\x1f\x{85}\pZ]"  # what Python's `strip` and `split` take for one
BLANK = rf"^{SPACE}*$"
BRACKETS = ((r"\(", "-LRB-"), (r"\)", "-RRB-"))  # as treebanks write them
LINE_END = r"[\n\r]"
NO_OUTPUT = -1e9  # a score that JSON can carry, where -inf is
SUBSTITUTE = 0xFFFD  # stands for bytes that are no UTF-8

Outputs = dict[str, tf.Tensor]


def _lines(name: str) -> tf.TensorSpec:
    return tf.TensorSpec([None], tf.string, name=name)


def _option(name: str, dtype: tf.DType) -> tf.TensorSpec:
    """A scalar or [batch]; `_checks` sees to that, as no signature can say it."""
    return tf.TensorSpec(None, dtype, name=name)


class ServingModule(tf.Module):
    """What `Translator` does, as TensorFlow and TensorFlow Text ops.

    Args:
        translator: its weights become part of a SavedModel of this module.
        quantize: how weights are stored: "none", "bfloat16" or "int8".

    Raises:
        T2TError: the model's precision is not `PRECISIONS[quantize]`, or the translator samples.
    """

    def __init__(self, translator: Translator, quantize: str = "none") -> None:
        super().__init__(name="translator")
        model, vocabulary = translator.model, translator.vocabulary
        if model.dtype_policy.name != PRECISIONS[quantize]:
            raise T2TError(f"quantize={quantize}: load the model with precision={PRECISIONS[quantize]!r}")
        translator.options.check_served()
        weights = Int8Weights(model) if quantize == "int8" else None
        self._constraint = translator.constraint
        self._separates_words = translator.problem is not None and translator.problem.separates_words
        self._search = BeamSearch(model, weights, quantize == "none", self._constraint)
        # What a SavedModel holds must be an attribute. Of a Keras variable, TensorFlow would save two: the
        # one that a graph reads, and another that TensorFlow Serving fills.
        own = weights.variables if weights else [weight.value for weight in model.weights]
        self.weights = [*own, *self._search.variables]
        self.tokenizer = vocabulary.graph_resource
        self._vocabulary = vocabulary
        self._options = translator.options
        self._max_length = translator.max_length

    @tf.function(input_signature=[_lines("inputs")], autograph=False)
    def translate(self, inputs: tf.Tensor) -> Outputs:
        """The best outputs of each line, decoded as the problem says.

        Args:
            inputs: string [batch], UTF-8. Bytes that are none count as U+FFFD, line ends as spaces.

        Returns:
            "outputs", string [batch, n], best first, and "scores", float32 [batch, n], log-probability /
            length penalty. A line without content has the output "" of score 0; where the search finishes
            fewer than n outputs, the rest are "" of score `NO_OUTPUT`.
        """
        options = self._options
        settings = SearchSettings(
            beam_size=tf.constant(options.beam_size),
            alpha=tf.constant(options.alpha, tf.float32),
            extra_length=tf.constant(options.extra_length),
            n=tf.constant(options.outputs),
        )
        return self._translate(inputs, settings)

    @tf.function(
        input_signature=[
            _lines("inputs"),
            _option("beam_size", tf.int32),
            _option("alpha", tf.float32),
            _option("extra_length", tf.int32),
            _option("n", tf.int32),
        ],
        autograph=False,
    )
    def translate_with_options(
        self, inputs: tf.Tensor, beam_size: tf.Tensor, alpha: tf.Tensor, extra_length: tf.Tensor, n: tf.Tensor
    ) -> Outputs:
        """The best outputs of each line, decoded as the call says.

        Each option is a scalar, one value for all lines, or [batch], one for each line. A server that joins
        calls to batches (TensorFlow Serving's --enable_batching) takes only [batch]. The answer is as wide as
        the largest n of the batch: a line of smaller n has "" of score `NO_OUTPUT` behind its own.

        Args:
            inputs: as in `translate`.
            beam_size: hypotheses kept at each position.
            alpha: exponent of the length penalty.
            extra_length: tokens that an output may have more than its input.
            n: outputs, at most `beam_size`.

        Returns:
            As `translate`.

        Raises:
            InvalidArgumentError: an option has another shape, or is out of its bounds.
        """
        batch = tf.shape(inputs)[0]
        given = {"beam_size": beam_size, "alpha": alpha, "extra_length": extra_length, "n": n}
        checks = _checks(given, batch)
        if self._constraint:
            fits = tf.reduce_all(extra_length >= LEAST_EXTRA_OF_TREE)
            least = f"extra_length must be at least {LEAST_EXTRA_OF_TREE}:"
            checks.append(tf.Assert(fits, [least, extra_length]))
        with tf.control_dependencies(checks):
            options = {name: _for_each(value, batch) for name, value in given.items()}
        return self._translate(inputs, SearchSettings(**options))

    def _translate(self, inputs: tf.Tensor, settings: SearchSettings) -> Outputs:
        batch = tf.shape(inputs)[0]
        inputs = tf.pad(inputs, [[0, tf.cast(batch == 0, tf.int32)]])  # no batch is empty to the ops below
        texts = tf.strings.unicode_transcode(inputs, "UTF-8", "UTF-8", replacement_char=SUBSTITUTE)
        texts = tf.strings.regex_replace(texts, LINE_END, " ")
        if self._separates_words:
            texts = _words(texts)
        blank = tf.strings.regex_full_match(texts, BLANK)  # [batch]
        ids, scores = self._search.search(self._encode(texts, blank), settings)
        shape = tf.shape(scores)
        flat = tf.RaggedTensor.from_tensor(tf.reshape(ids, [-1, tf.shape(ids)[2]]))  # [batch * n, None]
        outputs = tf.strings.regex_replace(self._vocabulary.decode_in_graph(flat), LINE_END, " ")
        outputs = tf.where(scores > NEVER, tf.reshape(outputs, shape), "")
        first = tf.range(shape[1]) == 0
        scores = tf.where(blank[:, None] & first, 0.0, tf.maximum(scores, NO_OUTPUT))
        return {"outputs": outputs[:batch], "scores": scores[:batch]}

    def _encode(self, texts: tf.Tensor, blank: tf.Tensor) -> tf.Tensor:
        """string [batch] -> int32 [batch, source]; only padding where a text is blank."""
        ids = self._vocabulary.encode_in_graph(texts)[:, : self._max_length - 1]
        ends = tf.fill([tf.shape(texts)[0], 1], EOS)
        dense = tf.concat([ids, ends], axis=1).to_tensor(PAD)
        return tf.where(blank[:, None], PAD, dense)


def _words(texts: tf.Tensor) -> tf.Tensor:
    """Sentences as the parsing problems make them: one space between any two words, string [batch]."""
    texts = tf.strings.strip(tf.strings.regex_replace(texts, rf"{SPACE}+", " "))
    for bracket, name in BRACKETS:
        texts = tf.strings.regex_replace(texts, bracket, name)
    return texts


def _checks(options: dict[str, tf.Tensor], batch: tf.Tensor) -> list[Any]:
    """Assertions that fail as INVALID_ARGUMENT where an option does not fit."""
    checks = []
    for name, value in options.items():
        size = tf.size(value)
        fits = (tf.rank(value) <= 1) & ((size == batch) | (size == 1))
        wrong = f"{name} must be a scalar, or have one value for each line; its shape is:"
        checks.append(tf.Assert(fits, [wrong, tf.shape(value)]))
    for name, least, most in BOUNDS:
        if name in options:
            fits = tf.reduce_all((options[name] >= least) & (options[name] <= most))
            checks.append(tf.Assert(fits, [f"{name} must be between {least} and {most}:", options[name]]))
    fits = tf.reduce_all(tf.abs(options["alpha"]) <= LARGEST_ALPHA)
    bounds = f"alpha must be between -{LARGEST_ALPHA} and {LARGEST_ALPHA}:"
    checks.append(tf.Assert(fits, [bounds, options["alpha"]]))
    fits = tf.reduce_all((options["n"] >= 1) & (options["n"] <= options["beam_size"]))
    checks.append(tf.Assert(fits, ["n must be between 1 and beam_size:", options["n"]]))
    return checks


def _for_each(value: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
    """A scalar, [1] or [batch] -> [batch]; without lines, [1] for the line that stands in for them."""
    value = tf.reshape(value, [-1])
    value = tf.concat([value, tf.ones([1], value.dtype)], axis=0)[: tf.maximum(tf.size(value), 1)]
    return value + tf.zeros([tf.maximum(batch, 1)], value.dtype)
