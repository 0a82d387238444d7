"""The choice of the attention heads that align words best, also where a model is loaded that needs some."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.data.word_alignment import Alignment, ErrorCounts
from t2t_revival.decoding.alignment_heads import FILE_NAME, AlignmentHeads
from t2t_revival.decoding.lines.batching import BatchPlan, OnProgress
from t2t_revival.decoding.lines.detailer import encode_pairs
from t2t_revival.decoding.lines.notes import OnNote
from t2t_revival.decoding.lines.preprocessor import pad
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TRAIN
from t2t_revival.utils.files import check_writable

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from t2t_revival.data.records import SplitData
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.problems.problem import Problem

MAX_CHOOSING = 500  # pairs by which heads are chosen
MAX_LEARNING = 200_000  # pairs from which translations of pieces are learned
SHARES = (1.0, 0.7, 0.5, 0.35)  # tried where there is a gold alignment
LINKS_FOUND, ERROR_RATE = "lexical_links_found", "error_rate"  # figures of a choice
Pair = tuple[str, str]


class Choice(NamedTuple):
    """Chosen heads, and figures: the number of pairs; the error rate, or the share of lexical links found."""

    heads: AlignmentHeads
    figures: dict[str, float]


def choose_heads(
    translator: Translator,
    pairs: Sequence[Pair],
    gold: Sequence[Alignment],
    on_progress: OnProgress | None = None,
    all_sure: bool = True,
) -> Choice:
    """Chooses the head of the decoder, or the layer with the mean of its heads, that aligns pairs best.

    Args:
        translator: of the model.
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
        return Choice(by_recall, {LINKS_FOUND: round(counts[by_recall].recall, 4), "pairs": len(pairs)})
    best = min(candidates, key=lambda one: counts[one].error_rate)
    rules = [replace(best, share=share, null=null) for share, null in product(SHARES, (False, True))]
    counts = _count(translator, pairs, gold, rules, on_progress)
    chosen = min(rules, key=lambda one: counts[one].error_rate)
    return Choice(chosen, {ERROR_RATE: round(counts[chosen].error_rate, 4), "pairs": len(pairs)})


def _count(
    translator: Translator,
    pairs: Sequence[Pair],
    gold: Sequence[Alignment],
    candidates: Sequence[AlignmentHeads],
    on_progress: OnProgress | None,
) -> dict[AlignmentHeads, ErrorCounts]:
    """Counts what each candidate finds in all pairs."""
    encoded = encode_pairs(translator.preprocessor(), pairs)
    vocabularies = translator.vocabularies
    counts: dict[AlignmentHeads, ErrorCounts] = defaultdict(ErrorCounts)

    def count(batch: list[int]) -> list[None]:
        own = [encoded[index] for index in batch]
        inputs = {"inputs": pad([one.source_ids for one in own]), "targets": pad([one.ids for one in own])}
        attention = np.asarray(translator.model.attention_weights(inputs).encoder_decoder, np.float32)
        for weights, index, one in zip(attention, batch, own, strict=True):
            source_words, words = one.words_of_input(vocabularies.inputs), one.words(vocabularies.targets)
            for heads in candidates:
                mean = weights[heads.layer - 1, [head - 1 for head in heads.heads]].mean(0)[heads.shifted :]
                _, links = heads.rule.align(mean, source_words, words, one.num_tags)
                counts[heads] = counts[heads].plus(ErrorCounts.of(frozenset(links), gold[index]))
        return [None] * len(batch)

    lengths = [max(len(one.source_ids), len(one.ids)) for one in encoded]
    plan = BatchPlan(lengths, translator.options.batch_size)
    for _ in translator.map_batches(count, plan, on_progress):
        pass
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
        translator: of the model.
        pairs: of dev.
        shards: of train.
        on_iteration: called with the number of iterations of learning that are done, and of all.
        on_progress: see `choose_heads`.

    Raises:
        T2TError: as `choose_heads`.
    """
    from t2t_revival.addons.lexicon import translation_probabilities
    from t2t_revival.data.examples import read_pairs

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
    vocabularies = translator.vocabularies
    for one in encode_pairs(translator.preprocessor(), pairs):
        source_words = one.words_of_input(vocabularies.inputs).of_tokens
        words = one.words(vocabularies.targets).of_tokens
        links = set()
        if source_words and words:
            probabilities = table[one.source_ids[:-1]][:, one.ids[:-1]].toarray()
            of_target, of_source = probabilities.argmax(0), probabilities.argmax(1)
            links = {
                (source_words[place] - one.num_tags, words[other])
                for other, place in enumerate(of_target.tolist())
                if of_source[place] == other and probabilities[place, other] > 0
            }
        found = frozenset(link for link in links if link[0] >= 0)
        yield Alignment(found, found)


@dataclass(frozen=True)
class HeadChoice:
    """A choice as `t2t-align --choose_heads` makes it, which is still to be made.

    Attributes:
        folder: of the training, in which the heads are stored if it can be written.
        pairs: of dev.
        shards: of train, from which translations of pieces are learned.
    """

    folder: ModelFolder
    pairs: list[Pair]
    shards: SplitData

    @classmethod
    def plan(cls, folder: ModelFolder, problem: Problem | None, data_dir: str | Path | None) -> HeadChoice:
        """Finds the data; `data_dir` is as in `ModelFolder.own_data`.

        Raises:
            T2TError: there is none to choose heads by.
        """
        try:
            if problem is None:
                raise T2TError(f"the problem {folder.run.problem} is not registered: give --t2t_usr_dir")
            data = folder.own_data(data_dir)
            return cls(folder, list(islice(data.references(DEV), MAX_CHOOSING)), data.split(TRAIN))
        except T2TError as error:
            raise _impossible(folder.path, error) from error

    def make(self, translator: Translator, is_given: bool, on_note: OnNote) -> AlignmentHeads:
        """Chooses heads of a model, stores them, and says so in a line.

        Those of a checkpoint whose file `is_given` are not stored: it may be an early one.

        Raises:
            T2TError: the pairs do not show which heads align.
        """
        fault = "the checkpoint is a given one" if is_given else ""
        try:
            check_writable(self.folder.path)
        except T2TError as error:
            fault = fault or str(error)
        place = f"this run only: {fault}" if fault else str(self.folder.path / FILE_NAME)
        on_note(f"choosing the heads that align words, by {len(self.pairs):,} pairs of dev, for {place}")
        try:
            choice = choose_without_gold(translator, self.pairs, self.shards)
        except T2TError as error:
            raise _impossible(self.folder.path, error) from error
        if not fault:
            choice.heads.save(self.folder.path, choice.figures)
        return choice.heads


def _impossible(output_dir: Path, error: T2TError) -> T2TError:
    files = {"source": "FILE", "target": "FILE", "gold": "FILE"}
    return T2TError(
        f"alignments: no {output_dir / FILE_NAME}, and heads cannot be chosen now: ",
        error,
        "; or choose them by pairs with alignments: run ",
        CommandLine("t2t-align", output_dir=output_dir, choose_heads=True, **files),
    )
