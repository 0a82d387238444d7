"""`Problem`: a task from text to text, with its data, its decoding and its metrics (T2T's contract)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_revival import registration
from t2t_revival.data.config import (
    DataConfig,
    DataSpec,
    Metadata,
    data_fingerprint,
    metadata_path,
    references_path,
)
from t2t_revival.data.corpus_generation import OnProgress, other_data
from t2t_revival.data.generation import generate, not_mixed, summed
from t2t_revival.data.mixture import SUFFIXES, Corpus, Mixture, is_mixture, parse
from t2t_revival.data.records import CorpusShards, SplitData, checked_paths, remake
from t2t_revival.data.sources import Source, source
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.metrics.metric import METRICS, TEXT, TREES
from t2t_revival.utils.files import file_lines, path_of

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_revival.hparams.hparams import HParams

TRAIN, DEV, TEST = "train", "dev", "test"
SAMPLE_VOCAB_SIZE = 1000
FOLDER_VOCAB_SIZES = ((500_000, 8_000), (2_000_000, 16_000))  # (exclusive bound of pairs, pieces)
VOCAB_SIZE = 32_000  # T2T's 2**15, rounded
ONE_WAY = ("preprocess", "postprocess", "encode_target", "render", "reference_lines")


class Finished(NamedTuple):
    """An output for the user, and whether the model's output had to be repaired."""

    text: str
    repaired: bool = False


class Problem:
    """Text in, text out; one vocabulary for both sides, or one for each.

    Ids: PAD 0, EOS 1, no BOS. Splits are "train", "dev" and "test".

    A subclass sets `source_lang`, `target_lang` and, for a default source, `tfds_default`; for data of
    another kind it overrides `make_source`. If it overrides `approx_vocab_size`, that holds for every source;
    otherwise large corpora get `large_vocab_size`, and smaller ones smaller vocabularies.

    Args:
        **settings: fields of the class's `DataConfig`. Where they do not say whether inputs and targets have
            a vocabulary each, the class does.

    Raises:
        T2TError: there is no such setting, or settings are invalid.

    Example:
        @registry.register_problem
        class TranslateEncs(Problem):
            "English to Czech."
            source_lang, target_lang, tfds_default = "en", "cs", "wmt16_translate/cs-en"
    """

    source_lang: str = ""
    target_lang: str = ""
    tfds_default: str = ""
    default_source: str = "wmt14"
    large_vocab_size: int = VOCAB_SIZE
    folder_vocab_sizes: tuple[tuple[int, int], ...] = FOLDER_VOCAB_SIZES
    separate_vocabularies: bool | None = None  # of a class for two scripts, True
    usual_hparams: tuple[str, str, str] = ("tiny", "auto", "base")  # sample; up to a million pairs; more
    config_type: type[DataConfig] = DataConfig
    lines_have_tags: bool = False  # whether each line begins with a tag of the vocabulary
    separates_words: bool = False  # whether inputs have a space between any two words
    targets_are_text: bool = True  # otherwise they are trees
    reference_lines: Callable[[Source, str], Iterable[str]] | None = None  # of a split, instead of targets
    _forward: Problem | None = None  # of a reversed problem

    def __init__(self, **settings: Any) -> None:
        known = [setting.name for setting in dataclasses.fields(self.config_type)]
        if unknown := [name for name in settings if name not in known]:
            raise T2TError(
                f"problem {self.name} has no setting {unknown[0]}; its settings: {', '.join(known)}"
            )
        if settings.get("separate_vocabularies") is None:
            settings["separate_vocabularies"] = self.separate_vocabularies
        self.config = self.config_type(**settings)
        if self.config.update_vocab and not self.config.vocab_file:
            raise T2TError("--update_vocab needs a vocabulary to add to: give --vocab_file")

    @property
    def name(self) -> str:
        """The class name in snake_case, as in the registry; with `_rev` of a reversed problem."""
        if self._forward:
            return f"{self._forward.name}{registration.REVERSED}"
        return registration.snake_case(type(self).__name__)

    def dataset_filename(self) -> str:
        """Returns the prefix of this problem's files in data_dir."""
        return self.name

    @property
    def forward(self) -> Problem:
        """The problem in the direction in which its data is made, named and described."""
        return self._forward or self

    @property
    def was_reversed(self) -> bool:
        """True if inputs are the shards' targets (T2T's name)."""
        return self._forward is not None

    def reversed(self) -> Problem:
        """Returns the problem `NAME_rev`: inputs and targets are swapped when they are read (T2T's `_rev`).

        Raises:
            T2TError: lines are changed before or after the model.
        """
        if methods := self.one_way():
            raise T2TError(
                f"problem {self.name} has no reverse: it has {', '.join(methods)} for one direction; "
                "write a class for the other direction"
            )
        reverse = copy.copy(self)
        reverse._forward = self
        reverse.source_lang, reverse.target_lang = self.target_lang, self.source_lang
        return reverse

    @classmethod
    def one_way(cls) -> list[str]:
        """Returns the methods of the class that change one side only, so that it has no reverse."""
        return [name for name in ONE_WAY if getattr(cls, name) is not getattr(Problem, name)]

    def make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        """Returns the source of a `--data_source`.

        Raises:
            T2TError: there is no such source, it cannot be read, or the class sets no languages.
        """
        if hasattr(self, "generate_samples"):
            raise T2TError(
                f"problem {self.name}: generate_samples is tensor2tensor's method; define make_source, which "
                "returns a PairsSource of these pairs: see t2t_revival/from_tensor2tensor.md, Porting a "
                "problem"
            )
        if not (self.source_lang and self.target_lang):
            languages = "its class must set source_lang and target_lang, or override make_source"
            raise T2TError(f"problem {self.name}: {languages}")
        return source(data_source, self.source_lang, self.target_lang, self.tfds_default, tmp_dir)

    def mixture(self, data_source: str) -> Mixture:
        """Returns the corpora that a `--data_source` lists; raises T2TError if it is no valid list."""
        return parse(data_source)

    @property
    def requested_mixture(self) -> Mixture | None:
        """The mixture of `data_source`; `None` where that is one source, or the data's own."""
        data_source = self.config.data_source
        return self.mixture(data_source) if data_source and is_mixture(data_source) else None

    def corpus_source(self, corpus: Corpus, tmp_dir: Path | None) -> Source:
        """Returns the source of a corpus of a mixture; raises T2TError as `make_source`."""
        if corpus.languages:
            raise T2TError(
                f"corpus {corpus.name!r}: languages are for problems of several, such as translate_many; "
                f"{self.name} has one pair"
            )
        made = self.make_source(corpus.source, tmp_dir)
        made.name = made.name or corpus.source
        return made

    @property
    def approx_vocab_size(self) -> int:
        """Number of pieces of the vocabulary of a large corpus."""
        return self.large_vocab_size

    def default_vocab_size(self, kind: str, pairs: int) -> int:
        """Returns the number of pieces if `vocab_size` is 0: the class's own, or by the corpus size."""
        approx = self.approx_vocab_size
        if type(self).approx_vocab_size is not Problem.approx_vocab_size:
            return approx
        if kind == "sample":
            return SAMPLE_VOCAB_SIZE
        if kind in ("folder", "hf"):
            return next((size for bound, size in self.folder_vocab_sizes if pairs < bound), approx)
        return approx

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Returns texts that are always one piece of the vocabulary."""
        return ()

    def generate_data(
        self,
        data_dir: str | Path,
        tmp_dir: str | Path | None = None,
        progress: OnProgress | None = None,
        shard_runner: ShardRunner = make_shards,
        overwrite: bool = False,
    ) -> Metadata:
        """Makes the missing parts of vocabulary and shards.

        Args:
            data_dir: the folder of the data; created if missing.
            tmp_dir: overrides the problem's own.
            progress: called as `progress(stage, done, total)`, in pairs; see `data.generation`.
            shard_runner: makes the shards: in processes on this machine, or a `data.beam.BeamShardRunner`.
            overwrite: whether data that is there is made again, of this source and with this vocabulary.

        Raises:
            T2TError: the source cannot be read, or has changed since the data was made; or data_dir holds
                other data.
        """
        if self._forward:
            if mixture := self.requested_mixture:
                self._refuse_tags(mixture.tags)
            return self._forward.generate_data(data_dir, tmp_dir, progress, shard_runner, overwrite)
        config = self.config
        for flag, reason in (
            ("clean", f"its rules are for text, which the targets of {self.name} are not"),
            ("separate_vocabularies", f"inputs and targets of {self.name} share words"),
            ("make_alignments", f"the targets of {self.name} have no words"),
        ):
            if getattr(config, flag) and not self.targets_are_text:
                raise T2TError(f"--{flag}: {reason}; leave it out")
        spec = DataSpec(
            name=self.dataset_filename(),
            config=config,
            default_source=self.default_source,
            make_source=self.corpus_source,
            mixture=self.mixture,
            default_vocab_size=self.default_vocab_size,
            user_symbols=self.user_symbols,
            references=self.reference_lines,
            overwrite=overwrite,
        )
        tmp = config.tmp_dir if tmp_dir is None else path_of(tmp_dir, "tmp_dir")
        return generate(spec, path_of(data_dir, "data_dir"), tmp, progress, shard_runner)

    def datagen_command(
        self, data_dir: Path, vocab_file: Sequence[Path] = (), source: str | None = None
    ) -> CommandLine:
        """Returns the command that generates the problem's data; FOLDER is a source that only the user knows.

        `vocab_file` is the vocabulary of the model that reads the data, or both, in the order of the data;
        without it, the problem's. `source` is the one to take where the problem names none.
        """
        has_default = self.default_source and (self.default_source != "wmt14" or self.tfds_default)
        config = self.config
        if not config.data_source:
            config = dataclasses.replace(config, data_source=source or ("" if has_default else "FOLDER"))
        if vocab_file:
            config = dataclasses.replace(config, vocab_size=0, vocab_file=(), update_vocab=False)
            config = dataclasses.replace(config, vocab_file=tuple(vocab_file), separate_vocabularies=None)
        return CommandLine("t2t-datagen", problem=self.name, data_dir=data_dir, **config.flags())

    def has_data(self, data_dir: str | Path) -> bool:
        """Returns whether the data in `data_dir` is complete; of a requested mixture, with its weights."""
        folder, name = path_of(data_dir, "data_dir"), self.forward.dataset_filename()
        mixture = self.requested_mixture
        names = [corpus.files_name(name) for corpus in mixture.corpora] if mixture else []
        if not all(metadata_path(folder, each).is_file() for each in (name, *names)):
            return False
        return not mixture or self.forward._load(folder).corpora == self.forward._read(folder)[0].corpora

    def open(self, data_dir: str | Path) -> Data:
        """Reads and checks the data in `data_dir`, once.

        Raises:
            T2TError: there is none, it was made from another source or with another vocabulary than this
                problem has, or a vocabulary is missing, corrupt or not that with which the shards were made.
        """
        folder = path_of(data_dir, "data_dir")
        if self._forward:
            data = self._forward.open(folder).reversed()
            self._refuse_tags(data.metadata.tags)
            return data
        metadata, corpora = self._read(folder)
        vocabularies = metadata.open_vocabularies(folder)
        parts = {name: Data(self, folder, part, vocabularies) for name, part in corpora.items()}
        return Data(self, folder, metadata, vocabularies, parts)

    def _read(self, folder: Path) -> tuple[Metadata, dict[str, Metadata]]:
        """Returns the metadata that the settings ask for, and those of a mixture's corpora."""
        metadata, source_name = self._load(folder), None
        if mixture := self.requested_mixture:
            if not metadata.corpora:
                raise not_mixed(metadata, folder)
            corpora = {corpus.name: self._load(folder, corpus.name) for corpus in mixture.corpora}
            for corpus in mixture.corpora:
                name = corpus.source_name(self.corpus_source(corpus, self.config.tmp_dir).name)
                DataConfig().check(folder, corpora[corpus.name], name)
            metadata = summed(metadata.name, str(self.config.data_source), mixture, corpora)
        else:
            corpora = {name: self._load(folder, name) for name in metadata.corpora}
            if self.config.data_source:
                requested = self.make_source(self.config.data_source, self.config.tmp_dir)
                if (source_name := requested.name or self.config.data_source) != metadata.source:
                    requested.check()
        self.config.check(folder, metadata, source_name)
        return metadata, corpora

    def _load(self, folder: Path, corpus: str = "") -> Metadata:
        name = self.dataset_filename()
        path = metadata_path(folder, Corpus(corpus, "").files_name(name))
        if path.is_file():
            return Metadata.load(path)
        making = self.datagen_command(folder)
        others = [] if corpus else other_data(folder, name)
        held = f" (it holds {others[0].held})" if others else ""
        missing = f"corpus {corpus!r} of {self.name}" if corpus else f"data for {self.name}"
        raise T2TError(f"no {missing} in {folder}{held}: run ", making)

    def _refuse_tags(self, tags: list[str]) -> None:
        if tags:
            raise T2TError(
                f"problem {self.name}: its data has tags such as {tags[0]} before sources, and the reverse "
                "would have them before targets: leave them out, or write a class for the other direction"
            )

    def feature_encoders(self, data_dir: str | Path) -> dict[str, TextEncoder]:
        """Returns the vocabularies of "inputs" and "targets", which most problems share (T2T's)."""
        return self.open(data_dir).vocabularies._asdict()

    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        """Returns examples {"inputs", "targets"}, each int32 [length] with EOS, unbatched, in file order."""
        from t2t_revival.data import examples

        return examples.dataset(self.open(data_dir).split(split))

    def hparams(self, defaults: HParams) -> HParams:
        """Returns the hyperparameters to train with, given the requested ones."""
        return defaults

    def eval_metrics(self) -> tuple[str, ...]:
        """Returns the names of the metrics of a split, of `METRICS`."""
        outputs = TEXT if self.targets_are_text else TREES
        return tuple(metric.name for metric in METRICS if metric.outputs in ("", outputs))

    def decode_hparams(self) -> dict[str, Any]:
        """Returns the defaults of decoding: beam_size, alpha, extra_length."""
        return {"beam_size": 4, "alpha": 0.6, "extra_length": 50}

    def preprocess(self, line: str, tokenized: bool = False) -> str:
        """Converts a user's line, without line end, to an input of the model.

        A `tokenized` line already has spaces between words and punctuation.

        Raises:
            T2TError: `tokenized` has no effect on this problem.
        """
        if tokenized:
            raise T2TError(
                f"decode_hparams: tokenized=True is for parsing: {self.name} takes lines as they are"
            )
        return line

    def postprocess(self, inputs: str, output: str) -> Finished:
        """Converts an output of the model for the user; `inputs` is what `preprocess` returned."""
        return Finished(output)

    def encode_target(self, output: str) -> str:
        """Converts a user's output to a target of the model, the inverse of `postprocess`.

        Raises:
            T2TError: it is not a valid output of this problem.
        """
        return output

    def render(self, output: str, width: int) -> str:
        """Formats a postprocessed output for `--pretty`, in `width` columns; raises T2TError for text."""
        raise T2TError(f"--pretty is for trees, but the outputs of {self.name} are text")


@dataclass(frozen=True)
class Data:
    """The data of a problem in a data_dir, as `Problem.open` has read and checked it.

    Attributes:
        problem: whose data it is.
        folder: the data_dir.
        metadata: its source, the vocabularies and the counts.
        vocabularies: of inputs and targets.
        parts: the data of each corpus of a mixture, by name.
    """

    problem: Problem
    folder: Path
    metadata: Metadata
    vocabularies: Vocabularies
    parts: dict[str, Data] = field(default_factory=dict)
    _splits: dict[str, SplitData] = field(default_factory=dict, init=False, repr=False)

    def reversed(self) -> Data:
        """Returns the same data, read in the other direction."""
        return dataclasses.replace(
            self,
            problem=self.problem.reversed(),
            vocabularies=self.vocabularies.reversed(),
            parts={name: part.reversed() for name, part in self.parts.items()},
        )

    def corpora(self, split: str) -> dict[str, Data]:
        """Returns the data of a mixture's corpora that have a split, by name; of one source, itself as ""."""
        parts = {name: part for name, part in self.parts.items() if split in part.metadata.splits}
        return parts if self.parts else {"": self}

    def split(self, split: str) -> SplitData:
        """Returns the examples of a split, of all corpora; their files are checked once.

        Raises:
            T2TError: there is no such split, or a shard is missing or truncated.
        """
        metadata = self.metadata
        if split not in metadata.splits:
            names = ", ".join(metadata.splits)
            raise T2TError(f"{self.problem.name} in {self.folder} has no {split} split; it has {names}")
        if split not in self._splits:
            corpora = []
            for name, part in self.corpora(split).items():
                counts, weight = part.metadata.splits[split], metadata.corpora.get(name, 1.0)
                paths = checked_paths(self.folder, part.metadata.name, split, counts.shard_bytes)
                corpora.append(CorpusShards(name, paths, counts.examples, weight))
            swapped = self.problem.was_reversed
            self._splits[split] = SplitData(corpora, swapped, metadata.weighted, metadata.aligned)
        return self._splits[split]

    def text(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields the pairs of a split, decoded from the shards."""
        from t2t_revival.data import examples

        for inputs, targets in examples.read(self.split(split)):
            yield self.vocabularies.inputs.decode(inputs), self.vocabularies.targets.decode(targets)

    def references(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields the inputs of a split with the references against which their outputs are measured.

        Raises:
            T2TError: they have none, or the file of references is missing.
        """
        if not self.problem.reference_lines:
            return self.text(split)
        self.split(split)
        if split == TRAIN:
            raise T2TError(
                f"{self.problem.name}: only outputs of dev and test have references, not those of train"
            )
        path = references_path(self.folder, self.metadata.name, split)
        if not path.is_file():
            raise T2TError(f"{path}: no such file: run ", remake(self.problem.name, self.folder))
        lines = file_lines(path)
        return ((inputs, line) for (inputs, _), line in zip(self.text(split), lines, strict=True))

    def fingerprint(self, split: str) -> str:
        """Returns 8 hexadecimal digits that differ for different examples, references or vocabularies."""
        references = references_path(self.folder, self.metadata.name, split)
        paths = [*self.split(split).paths, *([references] if references.is_file() else [])]
        return data_fingerprint(paths, "".join(made.fingerprint for made in self.metadata.vocabularies))

    def check_origins(self) -> list[str]:
        """Checks that what the data was made of has not changed; returns lines on what cannot be checked.

        Raises:
            T2TError: a file of the source, its version, a given vocabulary or a list of corpora has changed.
        """
        source, problem = self.metadata.source, self.problem.forward
        corpora: Sequence[Corpus] = (Corpus("", source),)
        if self.parts:
            if source.endswith(SUFFIXES) and not Path(source).expanduser().exists():
                return [f"{source} is not here: whether its corpora have changed cannot be checked"]
            listed = copy.copy(problem)
            listed.config = dataclasses.replace(problem.config, data_source=source)
            if not listed.has_data(self.folder):
                raise T2TError(
                    f"{source} has changed since {self.metadata.name} in {self.folder} was made of it: to "
                    f"take that over, give --data_source={source}"
                )
            corpora = problem.mixture(source).corpora
        notes = []
        for corpus in corpora:
            made = self.parts[corpus.name] if self.parts else self
            make_source = partial(problem.corpus_source, corpus, problem.config.tmp_dir)
            notes.append(made.metadata.check_origins(self.folder, make_source))
        return [note for note in notes if note]


Text2TextProblem = Problem  # the class that tensor2tensor's users derive theirs from
