"""`Problem`: what is learned, from which data, and how it is decoded and measured (T2T's contract)."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_revival import registry
from t2t_revival.data import generation, records
from t2t_revival.data.generation import Progress, Recipe
from t2t_revival.data.metadata import Metadata, check_same, check_sizes, data_fingerprint, metadata_path
from t2t_revival.data.source_checks import checked_size, checked_symbols, made_source, place_of
from t2t_revival.data.sources import Source, source
from t2t_revival.data.vocabularies import TextEncoder, open_vocabulary
from t2t_revival.data.vocabulary import fingerprint
from t2t_revival.data.workers import Engine, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.hints import datagen_command

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_revival.hparams.hparams import HParams

TRAIN, DEV, TEST = "train", "dev", "test"
SAMPLE_VOCAB_SIZE = 1000
FOLDER_VOCAB_SIZES = ((500_000, 8_000), (2_000_000, 16_000))  # below so many pairs: that many pieces
VOCAB_SIZE = 32_000  # T2T's 2**15, rounded


class Problem(abc.ABC):
    """A task with its data: T2T's `Problem`.

    Ids: PAD 0, EOS 1, no BOS. Splits are "train", "dev" and "test".

    Args:
        data_source: where the examples come from; None: what `data_dir` was made from, or the default.
        vocab_size: pieces of the vocabulary; 0: chosen by the problem.
        tmp_dir: where compressed files are unpacked while data is made; None: `data_dir/tmp`. What TensorFlow
            Datasets downloads lies where TFDS_DATA_DIR points instead, for other programs to use as well.
        vocab_file: a vocabulary to use instead of learning one: `vocab.*.spm`, or T2T's `vocab.*.subwords`.

    Raises:
        T2TError: both vocab_size and vocab_file are given.
    """

    usual_hparams: tuple[str, str, str] = ("tiny", "small", "base")  # for the sample, up to, from a million
    was_reversed: bool = False  # whether inputs are what the shards have as targets (T2T's name)

    def __init__(
        self,
        data_source: str | None = None,
        vocab_size: int = 0,
        tmp_dir: str | Path | None = None,
        vocab_file: str | Path | None = None,
    ) -> None:
        if vocab_size and vocab_file:
            raise T2TError(f"--vocab_size={vocab_size} and --vocab_file={vocab_file}: give one of them")
        self.data_source = data_source
        self.vocab_size = vocab_size
        self.tmp_dir = None if tmp_dir is None else Path(tmp_dir).expanduser()
        self.vocab_file = None if vocab_file is None else Path(vocab_file).expanduser()

    @property
    def name(self) -> str:
        """The class name in snake_case, as in the registry."""
        return registry.snake_case(type(self).__name__)

    def dataset_filename(self) -> str:
        """What the names of this problem's files in data_dir start with."""
        return self.name

    @abc.abstractmethod
    def generate_data(
        self,
        data_dir: str | Path,
        tmp_dir: str | Path | None = None,
        progress: Progress | None = None,
        engine: Engine = make_shards,
    ) -> Metadata:
        """Makes vocabulary and shards in `data_dir`; does what is missing, and nothing twice.

        Args:
            data_dir: where the data goes; made if missing.
            tmp_dir: overrides the problem's own.
            progress: called as `progress(stage, done, total)`, in pairs.
            engine: what makes the shards: processes on this machine, or `data.beam.BeamEngine`.

        Raises:
            T2TError: the source cannot be read, or data_dir holds other data.
        """

    @abc.abstractmethod
    def has_data(self, data_dir: str | Path) -> bool:
        """Whether `generate_data` has finished in `data_dir`."""

    @abc.abstractmethod
    def feature_encoders(self, data_dir: str | Path) -> dict[str, TextEncoder]:
        """The vocabulary of "inputs" and that of "targets".

        Raises:
            T2TError: there is none, or it is damaged.
        """

    @abc.abstractmethod
    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        """Examples {"inputs", "targets"}, each int32 [length] with EOS, unbatched, in file order.

        Raises:
            T2TError: there is no data of that split in data_dir.
        """

    @property
    @abc.abstractmethod
    def approx_vocab_size(self) -> int:
        """Pieces of the vocabulary where the corpus is large enough."""

    def hparams(self, defaults: HParams) -> HParams:
        """The set that this problem is trained with where `defaults` was asked for."""
        return defaults

    def eval_metrics(self) -> tuple[str, ...]:
        """Names of what is measured on the dev split."""
        return ("loss", "perplexity", "accuracy")

    def decode_hparams(self) -> dict[str, Any]:
        """How the problem is decoded if nobody says otherwise: beam_size, alpha, extra_length."""
        return {"beam_size": 4, "alpha": 0.6, "extra_length": 50}


class Finished(NamedTuple):
    """An output for people, and whether what the model gave had to be repaired."""

    text: str
    repaired: bool = False


class Text2TextProblem(Problem):
    """Text in, text out, one vocabulary for both.

    A subclass says `source_lang`, `target_lang` and, for a default source, `tfds_default`; one with data
    of another kind overrides `make_source`. An `approx_vocab_size` of its own holds for every source; without
    one, `large_vocab_size` is that of a large corpus, and smaller ones get smaller vocabularies.

    Example:
        @registry.register_problem
        class TranslateEncs(Text2TextProblem):
            "English to Czech."
            source_lang, target_lang, tfds_default = "en", "cs", "wmt16_translate/cs-en"
    """

    source_lang: str
    target_lang: str
    tfds_default: str = ""
    default_source: str = "wmt14"
    large_vocab_size: int = VOCAB_SIZE
    folder_vocab_sizes: tuple[tuple[int, int], ...] = FOLDER_VOCAB_SIZES
    separates_words: bool = False  # whether inputs are words with a space between any two
    reference_lines: Callable[[Source, str], Iterable[str]] | None = None

    @property
    def approx_vocab_size(self) -> int:
        """See `Problem.approx_vocab_size`."""
        return self.large_vocab_size

    def eval_metrics(self) -> tuple[str, ...]:
        """Loss, perplexity and accuracy per subword, and BLEU of real decoding."""
        return (*super().eval_metrics(), "bleu")

    def make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        """The pairs behind a `--data_source`.

        Raises:
            T2TError: there is no such source, or it cannot be read; the class does not say which languages.
        """
        where = f"{place_of(type(self))}: problem {self.name}"
        if hasattr(self, "generate_samples"):
            raise T2TError(
                f"{where}: generate_samples is T2T's way; here make_source returns a PairsSource of these "
                "pairs, as in docs/from_tensor2tensor.md, Porting a problem"
            )
        languages = [getattr(self, name, None) for name in ("source_lang", "target_lang")]
        if not all(isinstance(language, str) and language for language in languages):
            raise T2TError(f"{where}: its class must say source_lang and target_lang, or make_source")
        return source(data_source, self.source_lang, self.target_lang, self.tfds_default, tmp_dir)

    def _source(self, data_source: str, tmp_dir: Path | None) -> Source:
        """The checked result of `make_source`."""
        return made_source(self.make_source, data_source, tmp_dir)

    def default_vocab_size(self, data_source: Source) -> int:
        """Pieces of the vocabulary where no `vocab_size` is given: the class's own, else by the corpus."""
        approx = checked_size(self, self.approx_vocab_size, "approx_vocab_size")
        if type(self).approx_vocab_size is not Text2TextProblem.approx_vocab_size:
            return approx
        if data_source.kind == "sample":
            return SAMPLE_VOCAB_SIZE
        if data_source.kind == "folder":
            pairs = data_source.count(TRAIN)
            return next((size for below, size in self.folder_vocab_sizes if pairs < below), approx)
        return approx

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Texts that always are one piece of the vocabulary."""
        return ()

    def generate_data(
        self,
        data_dir: str | Path,
        tmp_dir: str | Path | None = None,
        progress: Progress | None = None,
        engine: Engine = make_shards,
    ) -> Metadata:
        """See `Problem.generate_data`."""
        recipe = Recipe(
            name=self.dataset_filename(),
            data_source=self.data_source,
            default_source=self.default_source,
            make_source=self._source,
            vocab_size=self.vocab_size,
            default_vocab_size=lambda source: checked_size(
                self, self.default_vocab_size(source), "default_vocab_size"
            ),
            user_symbols=lambda source: checked_symbols(self, source),
            references=self.reference_lines,
            vocab_file=self.vocab_file,
        )
        tmp = self.tmp_dir if tmp_dir is None else Path(tmp_dir).expanduser()
        return generation.generate(recipe, _folder(data_dir), tmp, progress, engine)

    def has_data(self, data_dir: str | Path) -> bool:
        """See `Problem.has_data`."""
        return metadata_path(_folder(data_dir), self.dataset_filename()).is_file()

    def metadata(self, data_dir: str | Path) -> Metadata:
        """What the data in `data_dir` is: source, vocabulary, and counts of each split.

        Raises:
            T2TError: there is none, or it was made from another source or with another vocabulary than this
                problem was asked for.
        """
        folder = _folder(data_dir)
        if not self.has_data(folder):
            raise T2TError(f"no data for {self.name} in {folder}: run {datagen_command(self, folder)}")
        found = Metadata.load(metadata_path(folder, self.dataset_filename()))
        asked = self._source(self.data_source, self.tmp_dir) if self.data_source else None
        if asked and asked.name != found.source:
            asked.check()
        check_same(folder, found, asked.name if asked else None, self.vocab_size, self.vocab_file)
        return found

    def vocabulary(self, data_dir: str | Path) -> TextEncoder:
        """The shared vocabulary.

        Raises:
            T2TError: there is none, it is damaged, or is not the one that the shards were made with.
        """
        metadata = self.metadata(data_dir)
        path = _folder(data_dir) / metadata.vocab_file
        if fingerprint(path) != metadata.vocab_fingerprint:
            raise T2TError(
                f"{path}: not the vocabulary that the shards of {self.name} there were made with "
                "(a data_dir made with another vocabulary); put the right file back or use another --data_dir"
            )
        return open_vocabulary(path)

    def feature_encoders(self, data_dir: str | Path) -> dict[str, TextEncoder]:
        """See `Problem.feature_encoders`; both are the same object."""
        vocabulary = self.vocabulary(data_dir)
        return {"inputs": vocabulary, "targets": vocabulary}

    def shards(self, split: str, data_dir: str | Path) -> list[Path]:
        """Paths of all shards of a split, in order.

        Raises:
            T2TError: there is no such split, or a shard is missing or has not its full size.
        """
        folder, metadata = _folder(data_dir), self.metadata(data_dir)
        if split not in metadata.splits:
            raise T2TError(
                f"{self.name} in {folder} has no {split} split; it has {', '.join(metadata.splits)}"
            )
        paths = records.shard_paths(folder, self.dataset_filename(), split)
        check_sizes(paths, metadata.splits[split])
        return paths

    def data_fingerprint(self, split: str, data_dir: str | Path) -> str:
        """8 hexadecimal digits that differ where a split's examples, references or vocabulary differ.

        Raises:
            T2TError: as `shards`.
        """
        paths = self.shards(split, data_dir)
        references = generation.references_path(_folder(data_dir), self.dataset_filename(), split)
        if references.is_file():
            paths = [*paths, references]
        return data_fingerprint(paths, self.metadata(data_dir).vocab_fingerprint)

    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        """See `Problem.dataset`."""
        from t2t_revival.data import examples

        paths = self.shards(split, data_dir)
        self.vocabulary(data_dir)
        return examples.dataset(paths)

    def text(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        """The sentence pairs of a split as they were read, by decoding the shards.

        Raises:
            T2TError: as `dataset`, or a shard is damaged.
        """
        from t2t_revival.data import examples

        vocabulary = self.vocabulary(data_dir)
        for inputs, targets in examples.read(self.shards(split, data_dir)):
            yield vocabulary.decode(inputs), vocabulary.decode(targets)

    def references(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        """The inputs of a split, and what their outputs are measured against.

        Raises:
            T2TError: as `text`.
        """
        return self.text(split, data_dir)

    def prepare(self, line: str, tokenized: bool = False) -> str:
        """The input for a line as people write it.

        Args:
            line: without a line end.
            tokenized: whether it has spaces between words and marks already.

        Raises:
            T2TError: `tokenized`, where that makes no difference.
        """
        if tokenized:
            raise T2TError(
                f"decode_hparams: tokenized=True is for parsing: {self.name} takes lines as they are"
            )
        return line

    def finish(self, inputs: str, output: str) -> Finished:
        """An output for people.

        Args:
            inputs: what the model was given, as `prepare` made it.
            output: what it gave.
        """
        return Finished(output)

    def target(self, output: str) -> str:
        """What the model learns for an output as people write it, the inverse of `finish`.

        Raises:
            T2TError: it is no output of this problem.
        """
        return output

    def drawn(self, output: str, width: int) -> str:
        """A finished output as people read it best.

        Args:
            output: what `finish` gave.
            width: columns there are.

        Raises:
            T2TError: it is text, which is read best as it is.
        """
        raise T2TError(f"--pretty is for trees, and {self.name} gives text")


def _folder(path: str | Path) -> Path:
    return Path(path).expanduser()
