"""Translation as one TensorFlow graph, from strings to strings, with weights in float32, bfloat16 or int8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.decoding.addons import addon
from t2t_revival.decoding.capabilities import SAVED_MODEL, check, check_held
from t2t_revival.decoding.engine import Inputs, SearchSettings
from t2t_revival.decoding.hypothesis_scores import NEG_INF
from t2t_revival.decoding.lines.preprocessor import known_tags
from t2t_revival.decoding.options import INT8, MIN_EXTRA_LENGTH_OF_TREE, MIXED_BFLOAT16
from t2t_revival.decoding.search.beams import Results
from t2t_revival.decoding.search.sampling import draws_in_graph
from t2t_revival.decoding.search.search_graph import SearchGraph, Weights
from t2t_revival.errors import T2TError
from t2t_revival.serving.call_options import (
    OPTIONS,
    PREFIXES,
    TABLES,
    TAG,
    WITH_SEEDS,
    check_shape,
    checks_of,
    column,
    search_settings_of,
)
from t2t_revival.serving.description import Description
from t2t_revival.serving.int8_weights import Int8Weights
from t2t_revival.serving.scoring import SCORING, score_outputs
from t2t_revival.serving.signatures import (
    DEFAULT,
    DESCRIBE,
    NO_OUTPUT,
    SCORE,
    WITH_OPTIONS,
    WITH_PREFIXES,
    WITH_SAMPLING,
    WITH_TABLES,
)
from t2t_revival.serving.text_inputs import LINE_END, TextInputs, with_eos

if TYPE_CHECKING:
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.translator import Translator

# Keras dtype policy of the model for each scheme.
PRECISIONS = {"none": "float32", "bfloat16": "bfloat16", "int8_weights": MIXED_BFLOAT16}

Outputs = dict[str, tf.Tensor]
Columns = dict[str, tf.Tensor]  # options of a call, each [batch, 1] or a scalar


class ServingModule(tf.Module):
    """`Translator` as TensorFlow and TensorFlow Text ops.

    Args:
        translator: its weights become part of a SavedModel of this module.
        quantize: how weights are stored: "none", "bfloat16" or "int8_weights"; with the last, products are
            computed in bfloat16.
        heads: align words in the details of `score`; `None` leaves alignments out.

    Attributes:
        translate_with_options: `translate` with the options of the call: inputs, beam_size, alpha,
            extra_length, n and, of models with tags, tag; each option is a scalar for all lines, or [batch].
            Raises InvalidArgumentError where one has another shape or is out of bounds.
        translate_with_sampling: draws n outputs of each line, at most 100. It has inputs, alpha (for scores),
            extra_length, n, sampling_temp, sampling_keep_top_k, random_seed and, of models with tags, tag. A
            line's outputs depend on its text and its own options, so that equal lines with equal seeds have
            equal ones.
        translate_with_prefixes: `translate_with_options`, without tag, with "prefixes", the beginning of the
            outputs of each line, string [batch] or a scalar; "" forces nothing. `None` where there are no
            tables.
        translate_with_tables: `translate_with_options`, without tag, with phrases that outputs must have or
            must not have: `tables` of each line's, string, as `tables.pack` returns them. The results have
            "ids" too, the tokens of the outputs, int32 [batch, n, length]. `None` for trees.
        score: log-probabilities and details of given outputs: inputs, targets and alternatives, their number;
            see `score_outputs`. `None` for trees.

    Raises:
        T2TError: the model's precision is not `PRECISIONS[quantize]`; or as `check` and `check_held`.
    """

    def __init__(
        self, translator: Translator, quantize: str = "none", heads: AlignmentHeads | None = None
    ) -> None:
        super().__init__(name="translator")
        model, vocabularies = translator.model, translator.vocabularies
        check(translator.options.asked({"int8": quantize == INT8}), SAVED_MODEL)
        if model.dtype_policy.name != PRECISIONS[quantize]:
            raise T2TError(f"quantize={quantize}: load the model with precision={PRECISIONS[quantize]!r}")
        check_held(model.hparams, SAVED_MODEL)
        int8 = Int8Weights(model) if quantize == "int8_weights" else None
        weights: Weights | None = int8.dequantized if int8 else None
        self._graph = SearchGraph(
            model, vocabularies.targets, translator.options, weights, constant_weights=quantize == "none"
        )
        separates_words = translator.problem is not None and translator.problem.separates_words
        form = translator.options.unicode_form
        self._text_inputs = TextInputs(vocabularies.inputs, translator.max_length, separates_words, form)
        # A SavedModel holds attributes only. A Keras variable would be saved twice: the one that the graph
        # reads, and another that TensorFlow Serving restores.
        own = int8.variables if int8 else [weight.value for weight in model.weights]
        self.weights = [*own, *self._graph.variables]
        self.tokenizers = [vocabulary.graph.resource for vocabulary in dict.fromkeys(vocabularies)]
        self._vocabularies = vocabularies
        self._options = translator.options
        self._max_length = translator.max_length
        self._tags = known_tags(translator.vocabularies, translator.problem)
        self.translate_with_options = self._compile(OPTIONS)
        self.translate_with_sampling = self._compile(WITH_SEEDS)
        self.score = self.translate_with_tables = self.translate_with_prefixes = self.describe = None
        if not (separates_words or self._graph.constraint):
            self._description = Description.of(translator, aligns=heads is not None).to_json()
            self.describe = tf.function(self._describe, input_signature=OPTIONS[:1], autograph=False)
            self.translate_with_tables = self._compile([*OPTIONS, TABLES])
            self.translate_with_prefixes = self._compile([*OPTIONS, PREFIXES])
        if not separates_words:
            if heads:
                heads.check(model.hparams)
            self._heads = heads
            self.score = tf.function(self._score, input_signature=SCORING, autograph=False)

    def _compile(self, specs: Sequence[tf.TensorSpec]) -> Any:
        """Returns the function of a signature that translates lines with options of the call.

        Each option is a scalar for all lines, or [batch] with a value for each. A server that joins requests
        to batches (TensorFlow Serving's --enable_batching) accepts only [batch]. The result is as wide as the
        largest n of the batch: lines of smaller n are padded with "" of score `NO_OUTPUT`.

        Args:
            specs: the signature's inputs without `tag`, of which lines are the first. A model
                with tags has `tag` too, put before lines that do not begin with it; "", the default, leaves
                them as they are. With `tables` or `prefixes`, lines have their tags already.

        Returns:
            The function, whose results are those of `translate`. It raises InvalidArgumentError where an
            option has a wrong shape, or is out of bounds, or the model lacks a tag.
        """
        has_tables = TABLES in specs
        has_tag = bool(self._tags) and not has_tables and PREFIXES not in specs
        specs = [*specs, *[TAG] * has_tag]
        defaults = {TAG: tf.constant("")}
        parameters = [
            Parameter(spec.name, Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(spec, Parameter.empty))
            for spec in specs
        ]

        def translate(inputs: tf.Tensor, *options: tf.Tensor) -> Outputs:
            given = dict(zip([spec.name for spec in specs[1:]], options, strict=True))
            batch, tag = tf.shape(inputs)[0], given.pop(TAG.name, None)
            columns = self._columns(given, batch)
            prefixes = None if tag is None else self._prefixes(tag, batch)
            outputs, ids = self._translate(partial(self._search, columns=columns), inputs, prefixes)
            return outputs | {"ids": ids[:batch]} if has_tables else outputs

        translate.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return tf.function(translate, input_signature=specs, autograph=False)

    @property
    def signatures(self) -> dict[str, Any]:
        """Functions of the SavedModel, by the names of their signatures."""
        functions = {
            DEFAULT: self.translate,
            WITH_OPTIONS: self.translate_with_options,
            WITH_SAMPLING: self.translate_with_sampling,
            DESCRIBE: self.describe,
            WITH_TABLES: self.translate_with_tables,
            WITH_PREFIXES: self.translate_with_prefixes,
            SCORE: self.score,
        }
        return {name: function for name, function in functions.items() if function}

    @tf.function(input_signature=OPTIONS[:1], autograph=False)
    def translate(self, inputs: tf.Tensor) -> Outputs:
        """Translates lines with the options of the export.

        Args:
            inputs: string [batch], UTF-8. Invalid bytes count as U+FFFD, line ends as spaces.

        Returns:
            "outputs", string [batch, n], best first, and "scores", float32 [batch, n], log-probability /
            length penalty. A blank line has the output "" of score 0. If the search finishes fewer than n
            outputs, the rest are "" of score `NO_OUTPUT`. "truncated", bool
            [batch], tells which lines were longer than the model's inputs, so that their ends are missing;
            "cut", bool [batch, n], which outputs reached their greatest length before their end.
        """
        options = self._options
        settings = SearchSettings.of(options, options.outputs)
        prefix = tf.constant(symbol(options.tag)) if options.tag else None
        return self._translate(lambda ids: self._graph.search(Inputs(ids, settings)), inputs, prefix)[0]

    def _search(self, ids: tf.Tensor, columns: Columns) -> Results:
        """Searches, with phrases or beginnings where there are any; draws samples where there are seeds."""
        inputs = Inputs(ids, search_settings_of({"beam_size": columns["n"], **columns}, self._options))
        if "random_seed" in columns:
            sampling = columns["random_seed"], columns["sampling_temp"], columns["sampling_keep_top_k"]
            inputs = inputs._replace(draws=draws_in_graph(inputs, *sampling))
        if TABLES.name in columns:
            inputs = inputs._replace(tables=addon("unpack_tables")(columns[TABLES.name][:, 0]))
        if PREFIXES.name in columns:
            texts, _ = self._text_inputs.texts(columns[PREFIXES.name][:, 0])
            prefixes = self._vocabularies.targets.graph.encode(texts).to_tensor(PAD)
            inputs = inputs._replace(prefixes=prefixes)
        return self._graph.search(inputs)

    def _describe(self, inputs: tf.Tensor) -> Outputs:
        """Returns the `Description` of the model as "description", the same text for each of the inputs."""
        return {"description": tf.fill(tf.shape(inputs), self._description)}

    def _columns(self, options: dict[str, tf.Tensor], batch: tf.Tensor) -> Columns:
        """Checks the options of a call; returns each as [batch, 1]."""
        checks = checks_of(options, batch)
        if self._graph.constraint:
            extra_length = options["extra_length"]
            fits = tf.reduce_all(extra_length >= MIN_EXTRA_LENGTH_OF_TREE)
            message = f"extra_length must be at least {MIN_EXTRA_LENGTH_OF_TREE}:"
            checks.append(tf.Assert(fits, [message, extra_length]))
        with tf.control_dependencies(checks):
            fillers = {TABLES.name: addon("no_tables"), PREFIXES.name: ""}  # of inputs without lines
            return {name: column(value, batch, fillers.get(name, 1)) for name, value in options.items()}

    def _prefixes(self, tag: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        """Checks the tags of a call; returns the text that belongs before each line, string [batch]."""
        is_known = tf.reduce_any(tf.reshape(tag, [-1, 1]) == tf.constant(["", *self._tags]), axis=1)
        message = f"tag must be empty or one of {', '.join(self._tags)}:"
        checks = [check_shape("tag", tag, batch), tf.Assert(tf.reduce_all(is_known), [message, tag])]
        with tf.control_dependencies(checks):
            tags = column(tag, batch, "")[:, 0]
        return tf.where(tags == "", "", tf.strings.join([tags, " "]))

    def _score(self, inputs: tf.Tensor, targets: tf.Tensor, alternatives: tf.Tensor) -> Outputs:
        """Scores given outputs, also of blank lines."""
        options, vocabularies = self._options, self._vocabularies
        texts, _ = self._text_inputs.texts(inputs, tf.constant(symbol(options.tag)) if options.tag else None)
        sources, _ = self._text_inputs.encode(texts, tf.zeros_like(texts, tf.bool))
        outputs, _ = self._text_inputs.texts(targets)
        ids = vocabularies.targets.graph.encode(outputs)
        targets = with_eos(ids, self._max_length + options.extra_length)
        found = score_outputs(self._graph, vocabularies, self._heads, sources, targets, alternatives)
        return {name: value[: tf.shape(inputs)[0]] for name, value in found.items()}

    def _translate(
        self,
        search: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None = None,
    ) -> tuple[Outputs, tf.Tensor]:
        """Translates lines; also returns the ids of the outputs. For prefixes, see `TextInputs.texts`."""
        batch = tf.shape(inputs)[0]
        texts, blank = self._text_inputs.texts(inputs, prefixes)
        sources, truncated = self._text_inputs.encode(texts, blank)
        ids, scores = search(sources)
        shape = tf.shape(scores)
        flat = tf.reshape(ids, [-1, tf.shape(ids)[2]])  # [batch * n, length]
        texts = self._vocabularies.targets.graph.decode(tf.RaggedTensor.from_tensor(flat))
        outputs = tf.strings.regex_replace(texts, LINE_END, " ")
        outputs = tf.where(scores > NEG_INF, tf.reshape(outputs, shape), "")
        cut = (scores > NEG_INF) & ~tf.reduce_any(ids == EOS, axis=2)
        first = tf.range(shape[1]) == 0
        scores = tf.where(blank[:, None] & first, 0.0, tf.maximum(scores, NO_OUTPUT))
        found = {"outputs": outputs, "scores": scores, "truncated": truncated, "cut": cut}
        return {name: value[:batch] for name, value in found.items()}, ids
