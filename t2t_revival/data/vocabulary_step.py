"""The vocabulary step of data generation: copies the given vocabulary or trains one on a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from t2t_revival.data.cleaning import KEPT, rule_numbers
from t2t_revival.data.metadata import DataSpec
from t2t_revival.data.source_checks import read_pairs
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabulary import TextEncoder, open_vocabulary
from t2t_revival.data.vocabulary.extension import extend, no_symbols
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary, VocabularyTooLargeError
from t2t_revival.utils.files import atomic_write

SAMPLE_CHARACTERS = 20_000_000  # of both sides together, on which a vocabulary is trained
SAMPLE_REGIONS = 100  # evenly spread over the corpus, from which these are taken


def make_vocabulary(
    spec: DataSpec,
    data_dir: Path,
    work_dir: Path,
    source: Source,
    lines: Iterable[str],
    on_training: Callable[[], None],
    size: int = 0,
) -> TextEncoder:
    """Returns the vocabulary of a data_dir, either already in it or new in `work_dir`.

    A vocabulary of the right name in `data_dir` is used (as in T2T). `on_training` is called before one is
    trained on `lines`, of both sides of `source`, with `size` pieces if the spec does not say.

    Raises:
        T2TError: a vocabulary is corrupt or lacks symbols, or none can be trained.
    """
    symbols = spec.user_symbols(source)
    if spec.vocab_file:
        vocabulary = open_vocabulary(spec.vocab_file)
        if spec.update_vocab:
            on_training()
            new = work_dir / f"vocab.{spec.name}.new{spec.vocab_file.suffix}"
            size = extend(vocabulary, lines, new, spec.vocab_size, symbols).size
            return open_vocabulary(new.rename(work_dir / f"vocab.{spec.name}.{size}{new.suffix}"))
        _check_symbols(vocabulary, symbols)
        copy = work_dir / spec.vocab_file.name
        with atomic_write(copy) as file:
            file.write(vocabulary.content)
        return open_vocabulary(copy)
    size = spec.vocab_size or size or spec.default_vocab_size(source)
    file_name = f"vocab.{spec.name}.{{}}.spm".format
    if (existing := data_dir / file_name(size)).exists():
        return _check_symbols(Vocabulary(existing), symbols)
    on_training()
    lines = list(lines)
    try:
        return Vocabulary.train(lines, work_dir / file_name(size), size, symbols)
    except VocabularyTooLargeError as error:
        if spec.vocab_size:
            raise
        return Vocabulary.train(lines, work_dir / file_name(error.max_size), error.max_size, symbols)


def sample_lines(
    source: Source,
    pairs: int,
    rules: Path | None = None,
    characters: int = SAMPLE_CHARACTERS,
    keeps: Callable[[str, str], bool] | None = None,
) -> Iterator[str]:
    """Yields lines of both sides of train, of which `pairs` is the size, from evenly spread regions.

    Their total length is at most `characters`. Pairs are left out that `rules` (see `data.cleaning`) drop, or
    that `keeps` does not keep.
    """
    regions = min(SAMPLE_REGIONS, pairs)
    for region in range(regions):
        budget = characters // regions
        start, stop = region * pairs // regions, (region + 1) * pairs // regions
        numbers = rule_numbers(rules, start, stop)
        for pair, rule in zip(read_pairs(source, "train", start, stop), numbers, strict=True):
            if rule != KEPT or (keeps and not keeps(*pair)):
                continue
            budget -= sum(map(len, pair))
            if budget < 0:
                break
            yield from pair


def _check_symbols(vocabulary: TextEncoder, symbols: Sequence[str]) -> TextEncoder:
    """Returns the vocabulary if it has all symbols."""
    if isinstance(vocabulary, Vocabulary):
        vocabulary.check_symbols(symbols)
    elif symbols:
        raise no_symbols(vocabulary, symbols)
    return vocabulary
