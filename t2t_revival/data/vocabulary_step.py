"""The vocabulary step of data generation: copies the given vocabularies, or trains them on a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from t2t_revival.data.base_source import TRAIN, Row
from t2t_revival.data.cleaning import passes_rules
from t2t_revival.data.config import DataSpec
from t2t_revival.data.corpus_generation import CorpusGeneration
from t2t_revival.data.mixture import CorpusRows, Mixture, symbol
from t2t_revival.data.vocabulary import TextEncoder, copy_name, open_vocabulary
from t2t_revival.data.vocabulary.extension import extend, no_symbols
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary, VocabularyTooLargeError
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write

SAMPLE_CHARACTERS = 20_000_000  # of both sides together, on which a vocabulary is trained
SAMPLE_REGIONS = 100  # evenly spread over the corpus, from which these are taken
NO_LANGUAGES = ("inputs", "targets")


class Side(Enum):
    """The part of a row for which a vocabulary is."""

    BOTH = slice(0, 2)
    INPUTS = slice(0, 1)
    TARGETS = slice(1, 2)


@dataclass(frozen=True)
class VocabularyStep:
    """The vocabularies of a data_dir.

    Attributes:
        spec: of the data.
        mixture: its corpora.
        corpora: the same, with plans.
        data_dir: a vocabulary of the right name that is there is used, as in T2T.
        work_dir: the folder for new ones.
        on_training: called before one is trained.
    """

    spec: DataSpec
    mixture: Mixture
    corpora: Sequence[CorpusGeneration]
    data_dir: Path
    work_dir: Path
    on_training: Callable[[], None]

    def make(self, sizes: Sequence[int]) -> list[TextEncoder]:
        """Returns the vocabulary of both sides, or those of inputs and targets, in `data_dir` or `work_dir`.

        `sizes` are those of the vocabularies that the data was made with; empty for new data.

        Raises:
            T2TError: a vocabulary is corrupt or lacks symbols, or none can be trained.
        """
        if self.mixture.is_single:
            self.corpora[0].apply_rules()
        separate = len(sizes) > 1 if sizes else self.spec.config.separate_vocabularies
        sides = (Side.INPUTS, Side.TARGETS) if separate else (Side.BOTH,)
        return [self._vocabulary(side, size) for side, size in zip(sides, sizes or (0, 0), strict=False)]

    def _vocabulary(self, side: Side, known_size: int) -> TextEncoder:
        config = self.spec.config
        if config.vocab_file:
            given = config.vocab_file[-1 if side is Side.TARGETS else 0]
            return self._updated(given, side) if config.update_vocab else self._copied(given, side)
        size = config.vocab_size or known_size or self._default_size
        existing = self.data_dir / f"{self._name(side)}.{size}.spm"
        return self._checked(Vocabulary(existing), side) if existing.exists() else self._trained(side, size)

    def _updated(self, given: Path, side: Side) -> TextEncoder:
        """Returns a vocabulary to which the pieces that the text needs are added."""
        self.on_training()
        vocabulary, name = open_vocabulary(given), self._name(side)
        new = self.work_dir / f"{name}.new{Path(copy_name(given)).suffix}"
        size = self.spec.config.vocab_size
        updated = extend(vocabulary, self.text(side), new, size, self._symbols(side))
        return open_vocabulary(new.rename(self.work_dir / f"{name}.{updated.size}{new.suffix}"))

    def _copied(self, given: Path, side: Side) -> TextEncoder:
        vocabulary = self._checked(open_vocabulary(given), side)
        with atomic_write(self.work_dir / copy_name(given)) as file:
            file.write(vocabulary.content)
        return open_vocabulary(self.work_dir / copy_name(given))

    def _trained(self, side: Side, size: int) -> TextEncoder:
        self.on_training()
        lines, symbols, name = list(self.text(side)), self._symbols(side), self._name(side)
        try:
            return Vocabulary.train(lines, self.work_dir / f"{name}.{size}.spm", size, symbols)
        except VocabularyTooLargeError as error:
            if self.spec.config.vocab_size and side is not Side.BOTH:
                raise T2TError(f"{self._language(side)}: {error}") from error
            if self.spec.config.vocab_size:
                raise
            size = error.max_size
            return Vocabulary.train(lines, self.work_dir / f"{name}.{size}.spm", size, symbols)

    def _checked(self, vocabulary: TextEncoder, side: Side) -> TextEncoder:
        """Returns the vocabulary if it has all symbols."""
        symbols = self._symbols(side)
        if isinstance(vocabulary, Vocabulary):
            vocabulary.check_symbols(symbols)
        elif symbols:
            raise no_symbols(vocabulary, symbols)
        return vocabulary

    def _symbols(self, side: Side) -> list[str]:
        """Returns texts that are always one piece: tags are of the inputs."""
        problems = [name for corpus in self.corpora for name in self.spec.user_symbols(corpus.source)]
        tags = [] if side is Side.TARGETS else map(symbol, self.mixture.tags)
        return [*dict.fromkeys(problems), *tags]

    def _name(self, side: Side) -> str:
        """Returns the beginning of a vocabulary's file name."""
        return f"vocab.{self.spec.name}" + ("" if side is Side.BOTH else f".{self._language(side)}")

    def _language(self, side: Side) -> str:
        """Returns the part of file names that tells the vocabularies of two sides apart."""
        languages = {corpus.languages for corpus in self.corpora}
        pair = languages.pop() if len(languages) == 1 else NO_LANGUAGES
        return (pair if pair[0] != pair[1] else NO_LANGUAGES)[side.value][0]

    @property
    def _default_size(self) -> int:
        kinds = {corpus.source.kind for corpus in self.corpora}
        pairs = sum(corpus.plan.pairs[TRAIN] for corpus in self.corpora)
        return self.spec.default_vocab_size(kinds.pop() if len(kinds) == 1 else "folder", pairs)

    def text(self, side: Side) -> Iterator[str]:
        """Yields lines of train, as many characters of a corpus as its weight asks for.

        Corpora that are too small for it are repeated. Lines that cleaning drops are left out, in a mixture
        but for duplicates.
        """
        pairs = {corpus.corpus.name: corpus.plan.pairs[TRAIN] for corpus in self.corpora}
        weights = self.mixture.weights(pairs)
        wanted, lines = {}, {}
        for corpus in self.corpora:
            name = corpus.corpus.name
            wanted[name] = SAMPLE_CHARACTERS * weights[name] / sum(weights.values())
            is_kept = passes_rules if corpus.plan.clean and not self.mixture.is_single else None
            rows = corpus.kept_rows() if self.mixture.is_single else corpus.rows()
            lines[name] = list(sample_lines(rows, pairs[name], int(wanted[name]), side, is_kept))
        repeats = {name: wanted[name] / max(sum(map(len, lines[name])), 1) for name in lines}
        least = max(1.0, min(repeats[name] for name, weight in weights.items() if weight))
        for name in lines:
            for _ in range(round(repeats[name] / least)):
                yield from lines[name]


def sample_lines(
    rows: CorpusRows,
    pairs: int,
    characters: int = SAMPLE_CHARACTERS,
    side: Side = Side.BOTH,
    is_kept: Callable[[Row], bool] | None = None,
) -> Iterator[str]:
    """Yields lines of train, from evenly spread regions.

    Args:
        rows: of a corpus.
        pairs: the size of its train.
        characters: total length of the lines, at most.
        side: of the rows, or both.
        is_kept: tells the rows that are taken; `None` takes all.
    """
    regions = min(SAMPLE_REGIONS, pairs)
    for region in range(regions):
        budget = characters // regions
        start, stop = region * pairs // regions, (region + 1) * pairs // regions
        for row in filter(is_kept, rows.rows(TRAIN, start, stop)):
            lines = row[:2][side.value]
            budget -= sum(map(len, lines))
            if budget < 0:
                break
            yield from lines
