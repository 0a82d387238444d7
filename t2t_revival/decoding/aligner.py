"""Word alignments of given pairs, and the choice of the heads that align best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.data.tags import symbol
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.word_alignment import Alignment, ErrorCounts, Link, words_of
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.batching import DecodingProgress
from t2t_revival.decoding.detailer import Hypothesis
from t2t_revival.decoding.preprocessor import LINE_ENDS, Preprocessor, pad
from t2t_revival.decoding.resumable import OnNote, ignore_note
from t2t_revival.errors import T2TError
from t2t_revival.utils.blank import is_blank
from t2t_revival.utils.texts import pairs_of

if TYPE_CHECKING:
    from pathlib import Path

    from scipy.sparse import csr_array

    from t2t_revival.data.records import SplitData
    from t2t_revival.decoding.details import Details
    from t2t_revival.decoding.translator import Translator

OnProgress = Callable[[DecodingProgress], None]
MAX_CHOOSING = 500  # pairs by which heads are chosen
MAX_LEARNING = 200_000  # pairs from which translations of pieces are learned
SHARES = (1.0, 0.7, 0.5, 0.35)  # tried where there is a gold alignment
Pair = tuple[str, str]


def align(
    translator: Translator,
    pairs: Sequence[Pair],
    on_progress: OnProgress | None = None,
    on_note: OnNote = ignore_note,
) -> list[list[Link]]:
    """Aligns the words of sources and targets, by one pass of the model, teacher-forced.

    Args:
        translator: loaded with `alignments=pharaoh`.
        pairs: of texts; one with an empty side has no links.
        on_progress: called after each batch.
        on_note: called with a line for people for each source that is too long, and cut.

    Raises:
        T2TError: a pair is not of strings, a text is no valid Unicode, or there is not enough memory.
    """
    pairs = pairs_of(pairs)
    encoded = encode(translator, pairs, on_note)
    found: list[list[Link]] = [[] for _ in pairs]
    numbers = [
        number for number, one in enumerate(encoded) if not (is_blank(one.source) or is_blank(one.text))
    ]

    def links(batch: list[int]) -> list[list[Link]]:
        details = translator.detailer([encoded[numbers[index]] for index in batch])
        return [[*one.links] for one in details]

    lengths = [max(len(encoded[number].source_ids), len(encoded[number].ids)) for number in numbers]
    aligned = translator.map_batches(links, lengths, translator.options.batch_size, on_progress)
    for index, number in enumerate(numbers):
        found[number] = aligned[index]
    return found


def encode(translator: Translator, pairs: Sequence[Pair], on_note: OnNote = ignore_note) -> list[Hypothesis]:
    """Encodes pairs; sources are truncated to the model's `max_length`, which is noted.

    Raises:
        T2TError: a text is no valid Unicode.
    """
    options, vocabularies = translator.options, translator.vocabularies
    preprocessor = Preprocessor(vocabularies, translator.problem, options, translator.max_length)
    sources, targets = ([pair[side].translate(LINE_ENDS) for pair in pairs] for side in (0, 1))
    source_ids = preprocessor.sources(
        preprocessor.preprocess(sources), lambda truncation: on_note(f"warning: {truncation}")
    )
    target_ids = preprocessor.encode(targets, vocabularies.targets)
    tag = symbol(options.tag)
    columns = zip(sources, source_ids, targets, target_ids, strict=True)
    return [Hypothesis(source, tag, ids, target, [*out, EOS]) for source, ids, target, out in columns]


def aligned(translator: Translator, pairs: Sequence[Pair], tag: str) -> list[Details]:
    """Returns the details of outputs with the links by which terms are checked.

    Args:
        translator: of a model with alignment heads.
        pairs: the model's inputs without their tags, and its outputs.
        tag: before each input, with its space; "" for none.
    """
    assert translator.term_detailer
    vocabularies = translator.vocabularies
    preprocessor = Preprocessor(vocabularies, None, translator.options, translator.max_length)
    sources = preprocessor.sources([tag + source for source, _ in pairs], lambda truncation: None)
    targets = preprocessor.encode([target for _, target in pairs], vocabularies.targets)
    rows = zip(pairs, sources, targets, strict=True)
    return translator.term_detailer(
        [Hypothesis(source, tag, ids, target, [*out, EOS]) for (source, target), ids, out in rows]
    )


class Choice(NamedTuple):
    """Chosen heads, and their alignment error rate, or the share of the given links that they do not find."""

    heads: AlignmentHeads
    error_rate: float

    def save(self, output_dir: Path, num_pairs: int, *, lexical: bool) -> Path:
        """Writes the heads into an output_dir; returns the file.

        Args:
            output_dir: folder of the training.
            num_pairs: number of the pairs that they were chosen by.
            lexical: whether by `lexical_alignments`, which are not all links.

        Raises:
            T2TError: as `AlignmentHeads.save`.
        """
        name, value = (
            ("lexical_links_found", 1 - self.error_rate) if lexical else ("error_rate", self.error_rate)
        )
        return self.heads.save(output_dir, **{name: round(value, 4)}, pairs=num_pairs)


def choose_heads(
    translator: Translator,
    pairs: Sequence[Pair],
    gold: Sequence[Alignment],
    on_progress: OnProgress | None = None,
    all_sure: bool = True,
) -> Choice:
    """Chooses the head of the decoder, or the layer with the mean of its heads, that aligns pairs best.

    Args:
        translator: the model.
        pairs: of dev.
        gold: their alignments.
        on_progress: called after each batch.
        all_sure: whether the gold alignments are complete. If not, as those of `lexical_alignments`, heads
            are chosen by the share of gold links that they find, and each target word has one link.

    Raises:
        T2TError: there are no gold links, or the decoder has no self-attention.
    """
    if not any(one.sure for one in gold):
        raise T2TError("there are no links to choose heads by: give --gold=FILE with some")
    hparams = translator.model.hparams
    layers = range(1, hparams.decoder_layers + 1)
    each = [(head,) for head in range(1, hparams.num_heads + 1)]
    groups = [*each, tuple(range(1, hparams.num_heads + 1))]
    candidates = [AlignmentHeads(*one) for one in product(layers, groups, (False, True))]
    candidates[0].check(hparams)
    counts = _count(translator, pairs, gold, candidates, on_progress)
    by_recall = max(candidates, key=lambda one: counts[one].recall)
    if not all_sure:
        return Choice(by_recall, 1 - counts[by_recall].recall)
    best = min(candidates, key=lambda one: counts[one].error_rate)
    rules = [replace(best, share=share, null=null) for share, null in product(SHARES, (False, True))]
    counts = _count(translator, pairs, gold, rules, on_progress)
    chosen = min(rules, key=lambda one: counts[one].error_rate)
    return Choice(chosen, counts[chosen].error_rate)


def _count(
    translator: Translator,
    pairs: Sequence[Pair],
    gold: Sequence[Alignment],
    candidates: Sequence[AlignmentHeads],
    on_progress: OnProgress | None,
) -> dict[AlignmentHeads, ErrorCounts]:
    """Counts what each candidate finds in all pairs."""
    encoded, vocabularies = encode(translator, pairs), translator.vocabularies
    counts: dict[AlignmentHeads, ErrorCounts] = defaultdict(ErrorCounts)

    def count(batch: list[int]) -> list[None]:
        own = [encoded[index] for index in batch]
        inputs = {"inputs": pad([one.source_ids for one in own]), "targets": pad([one.ids for one in own])}
        attention = np.asarray(translator.model.attention_weights(inputs).encoder_decoder, np.float32)
        for weights, index, one in zip(attention, batch, own, strict=True):
            source_words = words_of(vocabularies.inputs, one.source_ids[:-1], one.tag + one.source)
            target_words = words_of(vocabularies.targets, one.ids[:-1], one.text)
            tags = len(one.tag.split())
            for heads in candidates:
                mean = weights[heads.layer - 1, [head - 1 for head in heads.heads]].mean(0)
                links = heads.links(mean, source_words, target_words)
                kept = frozenset((source - tags, target) for source, target in links if source >= tags)
                counts[heads] = counts[heads].plus(ErrorCounts.of(kept, gold[index]))
        return [None] * len(batch)

    lengths = [max(len(one.source_ids), len(one.ids)) for one in encoded]
    translator.map_batches(count, lengths, translator.options.batch_size, on_progress)
    return counts


def choose_without_gold(
    translator: Translator,
    pairs: Sequence[Pair],
    shards: SplitData,
    on_iteration: Callable[[int, int], None] = lambda done, total: None,
    on_progress: OnProgress | None = None,
) -> Choice:
    """Chooses heads as `choose_heads`, by `lexical_alignments` that are learned from the training pairs.

    Args:
        translator: the model.
        pairs: of dev.
        shards: of train.
        on_iteration: called with the number of iterations of learning that are done, and of all.
        on_progress: see `choose_heads`.

    Raises:
        T2TError: as `choose_heads`.
    """
    from t2t_revival.data.examples import read_pairs
    from t2t_revival.data.lexicon import translation_probabilities

    vocabularies = translator.vocabularies
    sizes = vocabularies.inputs.size, on_iteration, vocabularies.target_size
    table = translation_probabilities(read_pairs(shards, MAX_LEARNING), *sizes)
    gold = list(lexical_alignments(translator, pairs, table))
    return choose_heads(translator, pairs, gold, on_progress, all_sure=False)


def lexical_alignments(
    translator: Translator, pairs: Sequence[Pair], table: csr_array
) -> Iterator[Alignment]:
    """Yields links of words whose pieces are each other's most probable translation in their pair.

    They are few and mostly right: enough to choose heads by, not to measure them.

    Args:
        translator: of whose vocabularies the pieces are.
        pairs: of texts.
        table: as `translation_probabilities` returns it.
    """
    for one in encode(translator, pairs):
        source, target = one.source_ids[:-1], one.ids[:-1]
        source_words = words_of(translator.vocabularies.inputs, source, one.tag + one.source)
        target_words = words_of(translator.vocabularies.targets, target, one.text)
        links = set()
        if source_words and target_words:
            probabilities = table[source][:, target].toarray()
            of_target, of_source = probabilities.argmax(0), probabilities.argmax(1)
            tags = len(one.tag.split())
            links = {
                (source_words[place] - tags, target_words[other])
                for other, place in enumerate(of_target.tolist())
                if of_source[place] == other
                and probabilities[place, other] > 0
                and source_words[place] >= tags
            }
        yield Alignment(frozenset(links), frozenset(links))
