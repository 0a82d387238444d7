"""Translation as one TensorFlow graph, from strings to strings, with weights in float32, bfloat16 or int8."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from t2t_revival.data.tags import symbol
from t2t_revival.decoding.beam_search import grow, grow_greedy
from t2t_revival.decoding.beams import NEG_INF, SearchSettings, search_settings
from t2t_revival.decoding.capabilities import SAVED_MODEL, check_held
from t2t_revival.decoding.decoding_loop import DecodingLoop
from t2t_revival.decoding.guards import Guards
from t2t_revival.decoding.int8 import MAX_FACTOR, Int8Weights, check_int8_products
from t2t_revival.decoding.model_tags import known_tags
from t2t_revival.decoding.options import MIN_EXTRA_LENGTH_OF_TREE, MIXED_BFLOAT16
from t2t_revival.decoding.sampling import Sampler
from t2t_revival.decoding.shortlist import shortlist_of
from t2t_revival.errors import T2TError
from t2t_revival.serving.call_options import OPTIONS, SAMPLING, TAG, check_shape, checks_of, column
from t2t_revival.serving.lexical.search import PhraseSearch
from t2t_revival.serving.lexical.translation import ConstrainedTranslation
from t2t_revival.serving.scoring import SCORING, GraphScorer
from t2t_revival.serving.signatures import (
    DEFAULT,
    NO_OUTPUT,
    SCORE,
    WITH_CONSTRAINTS,
    WITH_OPTIONS,
    WITH_SAMPLING,
    WITH_SHORTLIST,
)
from t2t_revival.serving.text_inputs import LINE_END, TextInputs, reversed_outputs, with_eos

if TYPE_CHECKING:
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.translator import Translator

# Keras dtype policy of the model for each scheme.
PRECISIONS = {
    "none": "float32",
    "bfloat16": "bfloat16",
    "int8": "float32",
    "int8_weights": MIXED_BFLOAT16,
}

Outputs = dict[str, tf.Tensor]
Search = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]  # from ids to ids and scores of the outputs


class ServingModule(tf.Module):
    """`Translator` as TensorFlow and TensorFlow Text ops.

    If the translator's options have a shortlist, `translate` has it too, and so has a third signature with
    the options of the call. With shortlist=by_line, a line's output does not depend on its batch; with
    shortlist=on it may depend on the lines that a server has joined with it.

    Args:
        translator: its weights become part of a SavedModel of this module.
        quantize: how weights are stored: "none", "bfloat16", "int8" or "int8_weights". With "int8", products
            are computed in int8; with "int8_weights", in bfloat16.
        heads: align words in the details of `score`; `None` leaves alignments out.

    Attributes:
        translate_with_options: `translate` with the options of the call: inputs, beam_size, alpha,
            extra_length, n and, of models with tags, tag; each option is a scalar for all lines, or [batch].
            Raises InvalidArgumentError where one has another shape or is out of bounds.
        translate_with_shortlist: the same with the shortlist of the export, or `None`.
        translate_with_sampling: draws n outputs of each line, at most 100. It has inputs, alpha (for scores),
            extra_length, n, sampling_temp, sampling_keep_top_k, random_seed and, of models with tags, tag. A
            line's outputs depend on its text and its own options, so that equal lines with equal seeds have
            equal ones.
        translate_with_constraints: `translate_with_options` with phrases that outputs must have or must not
            have; see `ConstrainedTranslation`. `None` for trees, and for a model with `reverse_target`.
        score: log-probabilities and details of given outputs: inputs, targets and alternatives, their number;
            see `GraphScorer`. `None` for trees, and for a model with `reverse_target`.

    Raises:
        T2TError: the model's precision is not `PRECISIONS[quantize]`, the translator samples, or TensorFlow
            has no int8 products; or as `check_held`.
    """

    def __init__(
        self, translator: Translator, quantize: str = "none", heads: AlignmentHeads | None = None
    ) -> None:
        super().__init__(name="translator")
        model, vocabularies = translator.model, translator.vocabularies
        if model.dtype_policy.name != PRECISIONS[quantize]:
            raise T2TError(f"quantize={quantize}: load the model with precision={PRECISIONS[quantize]!r}")
        translator.options.check_served()
        check_held(model.hparams, SAVED_MODEL)
        int8: Int8Weights | None = None
        weights = None
        if quantize == "int8":
            check_int8_products()
            int8 = Int8Weights(model, MAX_FACTOR)
            weights = int8.products
        elif quantize == "int8_weights":
            int8 = Int8Weights(model)
            weights = int8.dequantized
        self._constraint = translator.constraint
        separates_words = translator.problem is not None and translator.problem.separates_words
        self._text_inputs = TextInputs(vocabularies.inputs, translator.max_length, separates_words)
        extend = partial(grow, early_stopping=translator.options.early_stopping)
        restrictions: dict[str, Any] = {
            "constraint": self._constraint,
            "guards": Guards.of(translator.options),
            "banned": vocabularies.targets.banned,
        }
        search = partial(
            DecodingLoop, model, extend, weights=weights, grow_greedy=grow_greedy, **restrictions
        )
        self._search = search(constant_weights=quantize == "none")
        shortlist = shortlist_of(translator.options, translator.translations)
        self._default_search = search(shortlist=shortlist) if shortlist else self._search
        # A SavedModel holds attributes only. A Keras variable would be saved twice: the one that the graph
        # reads, and another that TensorFlow Serving restores.
        own = int8.variables if int8 else [weight.value for weight in model.weights]
        tokens = shortlist.variables if shortlist else []
        self.weights = [*own, *self._search.variables, *tokens]
        self.tokenizers = [vocabulary.graph.resource for vocabulary in vocabularies.all]
        self._vocabularies = vocabularies
        self._options = translator.options
        self._max_length = translator.max_length
        self._reverse_target = model.hparams.reverse_target
        self._tags = known_tags(translator.vocabularies, translator.problem)
        self.translate_with_options = self._with_options(self._search)
        self.translate_with_shortlist = self._with_options(self._default_search) if shortlist else None
        self._sampler = Sampler(model, weights=weights, **restrictions)
        self.translate_with_sampling = self._with_sampling()
        self.score = self.translate_with_constraints = None
        if not (separates_words or self._reverse_target or self._constraint):
            early_stopping = translator.options.early_stopping
            self.translate_with_constraints = ConstrainedTranslation(
                PhraseSearch(self._search, vocabularies.targets, early_stopping),
                self.translate_with_options,
                self._translate,
                self._columns,
                self._prefixes if self._tags else None,
            ).function
        if not (separates_words or self._reverse_target):
            self._scorer = GraphScorer(model, vocabularies, heads, weights)
            self.score = tf.function(self._score, input_signature=SCORING, autograph=False)

    def _with_options(self, search: DecodingLoop) -> Any:
        """Returns the function of a signature with options; that of a model with tags has a `tag` too."""
        translate = partial(self._translate_with_options, search)
        if not self._tags:
            return tf.function(translate, input_signature=OPTIONS, autograph=False)
        no_tag = tf.constant("")  # becomes the default of the signature's input

        def translate_with_tag(
            inputs: tf.Tensor,
            beam_size: tf.Tensor,
            alpha: tf.Tensor,
            extra_length: tf.Tensor,
            n: tf.Tensor,
            tag: tf.Tensor = no_tag,
        ) -> Outputs:
            return translate(inputs, beam_size, alpha, extra_length, n, tag)

        return tf.function(translate_with_tag, input_signature=[*OPTIONS, TAG], autograph=False)

    def _with_sampling(self) -> Any:
        """Returns the function of the signature that samples; that of a model with tags has a `tag` too."""
        if not self._tags:
            return tf.function(self._translate_with_sampling, input_signature=SAMPLING, autograph=False)
        no_tag = tf.constant("")

        def translate_with_tag(
            inputs: tf.Tensor,
            alpha: tf.Tensor,
            extra_length: tf.Tensor,
            n: tf.Tensor,
            sampling_temp: tf.Tensor,
            sampling_keep_top_k: tf.Tensor,
            random_seed: tf.Tensor,
            tag: tf.Tensor = no_tag,
        ) -> Outputs:
            sampling = sampling_temp, sampling_keep_top_k, random_seed
            return self._translate_with_sampling(inputs, alpha, extra_length, n, *sampling, tag)

        return tf.function(translate_with_tag, input_signature=[*SAMPLING, TAG], autograph=False)

    @property
    def signatures(self) -> dict[str, Any]:
        """Functions of the SavedModel, by the names of their signatures."""
        functions = {
            DEFAULT: self.translate,
            WITH_OPTIONS: self.translate_with_options,
            WITH_SAMPLING: self.translate_with_sampling,
        }
        if self.translate_with_shortlist:
            functions[WITH_SHORTLIST] = self.translate_with_shortlist
        if self.translate_with_constraints:
            functions[WITH_CONSTRAINTS] = self.translate_with_constraints
        if self.score:
            functions[SCORE] = self.score
        return functions

    @tf.function(input_signature=OPTIONS[:1], autograph=False)
    def translate(self, inputs: tf.Tensor) -> Outputs:
        """Translates lines with the options of the export.

        Args:
            inputs: string [batch], UTF-8. Invalid bytes count as U+FFFD, line ends as spaces.

        Returns:
            "outputs", string [batch, n], best first, and "scores", float32 [batch, n], log-probability /
            length penalty. A blank line has the output "" of score 0. If the search finishes fewer than n
            outputs, the rest are "" of score `NO_OUTPUT`. "truncated", bool
            [batch], tells which lines were longer than the model's inputs, so that their ends are missing.
        """
        options = self._options
        settings = search_settings(options.beam_size, options.alpha, options.extra_length, options.outputs)
        prefix = tf.constant(symbol(options.tag)) if options.tag else None
        return self._translate(partial(self._default_search, settings=settings), inputs, prefix)

    def _translate_with_options(
        self,
        search: DecodingLoop,
        inputs: tf.Tensor,
        beam_size: tf.Tensor,
        alpha: tf.Tensor,
        extra_length: tf.Tensor,
        n: tf.Tensor,
        tag: tf.Tensor | None = None,
    ) -> Outputs:
        """Translates lines with options of the call, with or without a shortlist.

        Each option is a scalar for all lines, or [batch] with a value for each. A server that joins requests
        to batches (TensorFlow Serving's --enable_batching) accepts only [batch]. The result is as wide as the
        largest n of the batch: lines of smaller n are padded with "" of score `NO_OUTPUT`.

        Args:
            search: with a shortlist, or without.
            inputs: as in `translate`.
            beam_size: hypotheses kept at each position.
            alpha: exponent of the length penalty.
            extra_length: maximum number of tokens that an output has more than its input.
            n: number of outputs, at most `beam_size`.
            tag: put before lines that do not begin with it; "" leaves them as they are.

        Returns:
            See `translate`.

        Raises:
            InvalidArgumentError: an option has a wrong shape, or is out of bounds; the model lacks a tag.
        """
        batch = tf.shape(inputs)[0]
        columns = self._columns(
            {"beam_size": beam_size, "alpha": alpha, "extra_length": extra_length, "n": n}, batch
        )
        prefixes = None if tag is None else self._prefixes(tag, batch)
        return self._translate(partial(search, settings=SearchSettings(**columns)), inputs, prefixes)

    def _translate_with_sampling(
        self,
        inputs: tf.Tensor,
        alpha: tf.Tensor,
        extra_length: tf.Tensor,
        n: tf.Tensor,
        sampling_temp: tf.Tensor,
        sampling_keep_top_k: tf.Tensor,
        random_seed: tf.Tensor,
        tag: tf.Tensor | None = None,
    ) -> Outputs:
        """Draws n outputs of each line; arguments and errors as `_translate_with_options`."""
        batch = tf.shape(inputs)[0]
        options = {
            "alpha": alpha,
            "extra_length": extra_length,
            "n": n,
            "sampling_temp": sampling_temp,
            "sampling_keep_top_k": sampling_keep_top_k,
            "random_seed": random_seed,
        }
        columns = self._columns(options, batch)
        settings = SearchSettings(columns["n"], columns["alpha"], columns["extra_length"], columns["n"])
        draw = partial(
            self._sampler.draw_in_graph,
            settings=settings,
            seeds=columns["random_seed"],
            temperature=columns["sampling_temp"],
            keep_top_k=columns["sampling_keep_top_k"],
        )
        return self._translate(draw, inputs, None if tag is None else self._prefixes(tag, batch))

    def _columns(self, options: dict[str, tf.Tensor], batch: tf.Tensor) -> dict[str, tf.Tensor]:
        """Checks the options of a call; returns each as [batch, 1]."""
        checks = checks_of(options, batch)
        if self._constraint:
            extra_length = options["extra_length"]
            fits = tf.reduce_all(extra_length >= MIN_EXTRA_LENGTH_OF_TREE)
            message = f"extra_length must be at least {MIN_EXTRA_LENGTH_OF_TREE}:"
            checks.append(tf.Assert(fits, [message, extra_length]))
        with tf.control_dependencies(checks):
            return {name: column(value, batch) for name, value in options.items()}

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
        found = self._scorer(sources, with_eos(ids, self._max_length + options.extra_length), alternatives)
        return {name: value[: tf.shape(inputs)[0]] for name, value in found.items()}

    def _translate(
        self,
        search: Search,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None = None,
    ) -> Outputs:
        """Translates lines; see `_texts` for prefixes."""
        batch = tf.shape(inputs)[0]
        texts, blank = self._text_inputs.texts(inputs, prefixes)
        sources, truncated = self._text_inputs.encode(texts, blank)
        ids, scores = search(sources)
        shape = tf.shape(scores)
        flat = tf.reshape(ids, [-1, tf.shape(ids)[2]])  # [batch * n, length]
        flat = tf.RaggedTensor.from_tensor(reversed_outputs(flat) if self._reverse_target else flat)
        outputs = tf.strings.regex_replace(self._vocabularies.targets.graph.decode(flat), LINE_END, " ")
        outputs = tf.where(scores > NEG_INF, tf.reshape(outputs, shape), "")
        first = tf.range(shape[1]) == 0
        scores = tf.where(blank[:, None] & first, 0.0, tf.maximum(scores, NO_OUTPUT))
        return {"outputs": outputs[:batch], "scores": scores[:batch], "truncated": truncated[:batch]}
