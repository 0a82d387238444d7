"""Token ids for all contestants: read or synthetic, batched once, stored in one .npz file.

Ids are the project's: PAD 0, EOS 1 at the end of every sentence, no BOS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PAD, EOS, FIRST_TOKEN = 0, 1, 2
SYNTHETIC_VOCAB = 8000
Pair = tuple[list[int], list[int]]  # source ids, target ids


class Batch(NamedTuple):
    """Padded ids of one step.

    Attributes:
        inputs: source ids, int32 [sentences, source].
        targets: target ids, int32 [sentences, target].
    """

    inputs: np.ndarray
    targets: np.ndarray

    @property
    def target_tokens(self) -> int:
        """Target tokens that are not padding, EOS included."""
        return int((self.targets != PAD).sum())


def read_ids(folder: Path, max_length: int) -> list[Pair]:
    """Reads sentence pairs of `folder`/train.en and train.de, lines of tokens such as "t17 t25".

    Args:
        folder: folder of the two files.
        max_length: maximum number of tokens with EOS; longer pairs are skipped.

    Raises:
        ValueError: the files differ in their number of lines, or a token is not "t" and a number above 1.
    """
    sources, targets = (_read_side(folder / f"train.{language}") for language in ("en", "de"))
    if len(sources) != len(targets):
        raise ValueError(f"{folder}: train.en has {len(sources)} lines, train.de {len(targets)}")
    return [pair for pair in zip(sources, targets, strict=True) if max(map(len, pair)) <= max_length]


def _read_side(path: Path) -> list[list[int]]:
    sentences = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        tokens = line.split()
        wrong = next(
            (t for t in tokens if not (t[0] == "t" and t[1:].isdecimal() and int(t[1:]) > EOS)), None
        )
        if wrong is not None:
            raise ValueError(f"{path}:{number}: {wrong!r} is not a token such as t17")
        sentences.append([*(int(token[1:]) for token in tokens), EOS])
    return sentences


def synthetic_pairs(count: int, max_length: int, seed: int) -> list[Pair]:
    """Returns synthetic sentence pairs: Zipf's law over 8,000 ids, log-normal lengths around 20 tokens.

    A target is its source under a fixed permutation of the ids, shortened by up to a fifth, which can be
    learned.

    Args:
        count: number of pairs.
        max_length: tokens with EOS of the longest sentence.
        seed: of all random numbers.
    """
    random = np.random.default_rng(seed)
    words = SYNTHETIC_VOCAB - FIRST_TOKEN
    weights = 1 / np.arange(1, words + 1)
    permutation = random.permutation(words) + FIRST_TOKEN
    lengths = np.clip(random.lognormal(np.log(20), 0.6, count), 1, max_length - 1).astype(int)
    stream = random.choice(words, size=int(lengths.sum()), p=weights / weights.sum())
    kept = np.maximum(1, (lengths * random.uniform(0.8, 1.0, count)).astype(int))
    sentences = np.split(stream, np.cumsum(lengths)[:-1])
    return [
        ([*(words + FIRST_TOKEN).tolist(), EOS], [*permutation[words[:keep]].tolist(), EOS])
        for words, keep in zip(sentences, kept, strict=True)
    ]


def token_batches(pairs: Sequence[Pair], tokens: int, random: np.random.Generator) -> Iterator[Batch]:
    """Yields batches of similar lengths, without end, in a new order each epoch.

    Args:
        pairs: the sentence pairs.
        tokens: of one batch, padding included, over the longer of source and target.
        random: generator of the order.

    Raises:
        ValueError: there are no pairs, or one is longer than a batch.
    """
    longest = max((max(map(len, pair)) for pair in pairs), default=0)
    if not 0 < longest <= tokens:
        raise ValueError(f"cannot make batches of {tokens} tokens: the longest sentence has {longest}")
    while True:
        order = random.permutation(len(pairs)).tolist()
        order.sort(key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
        groups = _groups([pairs[i] for i in order], tokens)
        for index in random.permutation(len(groups)):
            yield _padded(groups[index])


def _groups(pairs: list[Pair], tokens: int) -> list[list[Pair]]:
    groups: list[list[Pair]] = [[]]
    longest = 0
    for pair in pairs:
        longest = max(longest, *map(len, pair))
        if longest * (len(groups[-1]) + 1) > tokens:
            groups.append([])
            longest = max(map(len, pair))
        groups[-1].append(pair)
    return groups


def _padded(pairs: list[Pair]) -> Batch:
    sides = []
    for sentences in zip(*pairs, strict=True):
        ids = np.full((len(sentences), max(map(len, sentences))), PAD, np.int32)
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        sides.append(ids)
    return Batch(*sides)


def write_batches(path: Path, train: Sequence[Batch], held_out: Sequence[Batch]) -> None:
    """Writes the batches of the training steps, in order, and those of the held-out loss."""
    arrays: dict[str, Any] = {
        f"{kind}_{side}_{index}": ids
        for kind, batches in (("train", train), ("held_out", held_out))
        for index, batch in enumerate(batches)
        for side, ids in zip(Batch._fields, batch, strict=True)
    }
    np.savez(path, **arrays)


def read_batches(path: Path) -> tuple[list[Batch], list[Batch]]:
    """Reads the training batches and the held-out batches that `write_batches` wrote."""
    with np.load(path) as arrays:
        names = set(arrays.files)
        train, held_out = (
            [
                Batch(*(arrays[f"{kind}_{side}_{index}"] for side in Batch._fields))
                for index in range(sum(name.startswith(f"{kind}_inputs_") for name in names))
            ]
            for kind in ("train", "held_out")
        )
    return train, held_out
