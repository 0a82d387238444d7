"""Translation probabilities of pieces, learned from sentence pairs: IBM model 1.

Reference: Brown et al., 1993, "The Mathematics of Statistical Machine Translation", section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array, vstack

from t2t_revival.data.vocabulary.sentencepiece import PAD

if TYPE_CHECKING:
    from t2t_revival.data.examples import Pairs, Side

NULL = PAD  # stands once in every source, for target pieces that translate nothing
CANDIDATES = 100  # target pieces of each source piece among which probability is divided
ITERATIONS = 4  # of expectation maximisation
MAX_PRODUCT = 20_000_000  # entries of a sparse product that are in memory at once
TIE = 1e-6  # share of the mere count in the choice of candidates; decides for NULL, which is with all alike


def learn_translations(
    pairs: Pairs,
    vocab_size: int,
    best: int,
    frequent: int,
    on_iteration: Callable[[int, int], None] = lambda done, total: None,
    target_vocab_size: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Learns which target pieces translate which source pieces, and which are frequent.

    Args:
        pairs: see `translation_probabilities`.
        vocab_size: see `translation_probabilities`.
        best: number of translations of each piece.
        frequent: number of frequent pieces; fewer if the targets have fewer.
        on_iteration: see `translation_probabilities`.
        target_vocab_size: see `translation_probabilities`.

    Returns:
        int32 [source piece, best], see `most_probable`, and int32 [frequent], most frequent first.
    """
    table = translation_probabilities(pairs, vocab_size, on_iteration, target_vocab_size)
    counts = np.bincount(pairs.targets.ids)
    order = np.argsort(-counts, kind="stable")[: min(frequent, np.count_nonzero(counts))]
    return most_probable(table, best), order.astype(np.int32)


def translation_probabilities(
    pairs: Pairs,
    vocab_size: int,
    on_iteration: Callable[[int, int], None] = lambda done, total: None,
    target_vocab_size: int | None = None,
) -> csr_array:
    """Learns the probability of each target piece, given a source piece.

    Of each source piece, only the `CANDIDATES` target pieces that share most information with it have a
    probability. Without that choice, a million pairs would need the product of all pieces of all sentences in
    memory.

    Args:
        pairs: ids of both sides; EOS may be among them.
        vocab_size: number of pieces of the vocabulary that both sides share, or of the source's.
        on_iteration: called with the number of iterations that are done, and of all.
        target_vocab_size: number of pieces of the target's own vocabulary; `None` is that of the shared one.

    Returns:
        float32 [source piece, target piece], sparse. A row sums to 1, or is empty for a piece that no source
        has.
    """
    target_vocab_size = target_vocab_size or vocab_size
    sources, targets = _counts(pairs.inputs, vocab_size), _counts(pairs.targets, target_vocab_size)
    sentences = sources.shape[0]
    null = csr_array(
        (np.ones(sentences, np.float32), np.full(sentences, NULL), np.arange(sentences + 1)), sources.shape
    )
    sources = csr_array(sources + null)
    by_piece = csr_array(sources.T)  # [source piece, sentence]
    blocks = list(_blocks(np.minimum(by_piece @ np.diff(targets.indptr), target_vocab_size)))
    frequencies = np.asarray(targets.sum(axis=0)).ravel()
    table = _normalize([_candidates(by_piece[block], targets, frequencies) for block in blocks])
    for iteration in range(ITERATIONS):
        on_iteration(iteration, ITERATIONS)
        shares = _shares(table, sources, targets)
        table = _normalize([table[block] * (by_piece[block] @ shares) for block in blocks])
    on_iteration(ITERATIONS, ITERATIONS)
    return table


def most_probable(table: csr_array, count: int) -> np.ndarray:
    """Returns the target pieces of highest probability of each source piece, best first.

    Args:
        table: as `translation_probabilities` returns it.
        count: number of target pieces.

    Returns:
        int32 [source piece, count], padded with 0; nothing for `NULL`.
    """
    best = np.full((table.shape[0], count), PAD, np.int32)
    for piece, (start, end) in enumerate(pairwise(table.indptr)):
        if piece != NULL:
            order = start + np.argsort(-table.data[start:end], kind="stable")[:count]
            best[piece, : len(order)] = table.indices[order]
    return best


def _counts(side: Side, vocab_size: int) -> csr_array:
    """Counts the pieces of each sentence, float32 [sentence, piece]."""
    ones = np.ones(len(side.ids), np.float32)
    counts = csr_array((ones, side.ids, side.offsets), (len(side.offsets) - 1, vocab_size))
    counts.sum_duplicates()
    return counts


def _blocks(work: np.ndarray) -> Iterator[slice]:
    """Divides rows into ranges with a sum of `work` up to `MAX_PRODUCT`, or of one row."""
    ends = np.cumsum(work, dtype=np.int64)
    start = 0
    while start < len(work):
        done = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, done + MAX_PRODUCT, side="right")))
        yield slice(start, end)
        start = end


def _candidates(by_piece: csr_array, targets: csr_array, frequencies: np.ndarray) -> csr_array:
    """Counts how often pieces are together in a pair; keeps the `CANDIDATES` most associated of each row.

    Args:
        by_piece: counts of some source pieces, [source piece, sentence].
        targets: counts, [sentence, target piece].
        frequencies: counts of all target pieces, [target piece].
    """
    together = csr_array(by_piece @ targets)
    rows = np.repeat(np.arange(together.shape[0]), np.diff(together.indptr))
    expected = np.asarray(by_piece.sum(axis=1)).ravel()[rows] * frequencies[together.indices]
    information = np.log(together.data * np.float32(targets.shape[0]) / expected)
    scores = together.data * (np.maximum(information, 0) + TIE)
    kept = [
        start + np.argpartition(-scores[start:end], CANDIDATES)[:CANDIDATES]
        if end - start > CANDIDATES
        else np.arange(start, end)
        for start, end in pairwise(together.indptr)
    ]
    starts = np.cumsum([0, *map(len, kept)])
    places = np.concatenate(kept)
    return csr_array((together.data[places], together.indices[places], starts), together.shape)


def _shares(table: csr_array, sources: csr_array, targets: csr_array) -> csr_array:
    """Divides the count of each target piece by the probability that its source gives it (E step).

    The table times what these make of the source pieces is the expected count of each translation.
    """
    blocks = []
    for block in _blocks(sources @ np.diff(table.indptr)):
        counts = targets[block]
        explained = csr_array((sources[block] @ table) * (counts > 0))
        blocks.append(csr_array(counts * explained.power(-1)))
    return csr_array(vstack(blocks))


def _normalize(blocks: list[csr_array]) -> csr_array:
    """Joins blocks of rows and makes each row sum to 1 (M step); empty rows stay empty."""
    table = csr_array(vstack(blocks))
    sums = np.asarray(table.sum(axis=1)).ravel()
    return csr_array(diags_array(1 / np.where(sums > 0, sums, 1), dtype=np.float32) @ table)
