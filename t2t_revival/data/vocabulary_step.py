"""The vocabulary step of data generation: copies the given vocabularies or trains them on a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from t2t_revival.data.cleaning import KEPT, rule_numbers
from t2t_revival.data.config import DataSpec
from t2t_revival.data.source_checks import read_pairs
from t2t_revival.data.sources import Source
from t2t_revival.data.tags import symbol
from t2t_revival.data.vocabulary import TextEncoder, copy_name, open_vocabulary
from t2t_revival.data.vocabulary.extension import extend, no_symbols
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary, VocabularyTooLargeError
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write

SAMPLE_CHARACTERS = 20_000_000  # of both sides together, on which a vocabulary is trained
SAMPLE_REGIONS = 100  # evenly spread over the corpus, from which these are taken
BOTH_SIDES, INPUTS, TARGETS = slice(2), slice(1), slice(1, 2)  # of a pair, for which a vocabulary is


def make_vocabulary(
    spec: DataSpec,
    data_dir: Path,
    work_dir: Path,
    source: Source,
    lines: Iterable[str],
    on_training: Callable[[], None],
    sides: slice = BOTH_SIDES,
    known_size: int = 0,
) -> TextEncoder:
    """Returns the vocabulary of a data_dir, of both sides or one, either already in it or new in `work_dir`.

    A vocabulary of the right name in `data_dir` is used (as in T2T). `on_training` is called before one is
    trained on `lines` of `source`, with `known_size` pieces if the spec does not say.

    Raises:
        T2TError: a vocabulary is corrupt or lacks symbols, or none can be trained.
    """
    config, symbols, name = spec.config, [*spec.user_symbols(source)], f"vocab.{spec.name}"
    if sides != TARGETS:
        symbols += map(symbol, spec.tags)
    if sides != BOTH_SIDES:
        name += f".{_side_names(source)[sides.start or 0]}"
    if config.vocab_file:
        given = config.vocab_file[-1 if sides == TARGETS else 0]
        vocabulary, copy = open_vocabulary(given), work_dir / copy_name(given)
        if config.update_vocab:
            on_training()
            new = work_dir / f"{name}.new{copy.suffix}"
            size = extend(vocabulary, lines, new, config.vocab_size, symbols).size
            return open_vocabulary(new.rename(work_dir / f"{name}.{size}{new.suffix}"))
        _check_symbols(vocabulary, symbols)
        with atomic_write(copy) as file:
            file.write(vocabulary.content)
        return open_vocabulary(copy)
    size = config.vocab_size or known_size or spec.default_vocab_size(source)
    file_name = f"{name}.{{}}.spm".format
    if (existing := data_dir / file_name(size)).exists():
        return _check_symbols(Vocabulary(existing), symbols)
    on_training()
    lines = list(lines)
    try:
        return Vocabulary.train(lines, work_dir / file_name(size), size, symbols)
    except VocabularyTooLargeError as error:
        if config.vocab_size and sides != BOTH_SIDES:
            raise T2TError(f"{_side_names(source)[sides == TARGETS]}: {error}") from error
        if config.vocab_size:
            raise
        return Vocabulary.train(lines, work_dir / file_name(error.max_size), error.max_size, symbols)


def _side_names(source: Source) -> tuple[str, str]:
    """Returns the parts of file names that tell the vocabularies of a source's sides apart."""
    languages = source.source_lang, source.target_lang
    return languages if languages[0] != languages[1] else ("inputs", "targets")


def sample_lines(
    source: Source,
    pairs: int,
    rules: Path | None = None,
    characters: int = SAMPLE_CHARACTERS,
    keeps: Callable[[str, str], bool] | None = None,
    sides: slice = BOTH_SIDES,
) -> Iterator[str]:
    """Yields lines of train, of both sides or one, from evenly spread regions; `pairs` is the size of train.

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
            lines = pair[sides]
            budget -= sum(map(len, lines))
            if budget < 0:
                break
            yield from lines


def _check_symbols(vocabulary: TextEncoder, symbols: Sequence[str]) -> TextEncoder:
    """Returns the vocabulary if it has all symbols."""
    if isinstance(vocabulary, Vocabulary):
        vocabulary.check_symbols(symbols)
    elif symbols:
        raise no_symbols(vocabulary, symbols)
    return vocabulary
