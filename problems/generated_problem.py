"""`GeneratedProblem`: a problem whose data is made from a source, or from the corpora of a mixture."""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from t2t_revival.data import metadata as data_metadata
from t2t_revival.data.config import DataConfig, DataSpec
from t2t_revival.data.corpus_generation import OnProgress
from t2t_revival.data.generation import generate, not_mixed, summed
from t2t_revival.data.generation_folder import other_data
from t2t_revival.data.metadata import Metadata, metadata_path, references_path
from t2t_revival.data.mixture import SUFFIXES, Corpus, Mixture, is_mixture, parse
from t2t_revival.data.origin_check import check_origins
from t2t_revival.data.records import CorpusShards, SplitData, shard_paths
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.problems.problem import Problem
from t2t_revival.utils.files import path_of

Self = TypeVar("Self", bound="GeneratedProblem")


class GeneratedProblem(Problem):
    """A problem whose data is generated in a data_dir, and read from there.

    A subclass names its source, and how the vocabularies are made.
    """

    default_source: str
    reference_lines: Callable[[Source, str], Iterable[str]] | None = None
    _corpus: str = ""  # of a mixture; see `corpora`

    @abc.abstractmethod
    def make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        """Returns the source of a `--data_source`; raises T2TError if there is none, or it cannot be read."""

    @abc.abstractmethod
    def default_vocab_size(self, kind: str, pairs: int) -> int:
        """Returns the number of pieces if `vocab_size` is 0, by the source's kind and its pairs of train."""

    @abc.abstractmethod
    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Returns texts that are always one piece of the vocabulary."""

    def _make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        source = self.make_source(data_source, tmp_dir)
        source.name = source.name or data_source
        return source

    def generate_data(
        self,
        data_dir: str | Path,
        tmp_dir: str | Path | None = None,
        progress: OnProgress | None = None,
        shard_runner: ShardRunner = make_shards,
        overwrite: bool = False,
    ) -> Metadata:
        config = self.config
        if config.clean and not self.targets_are_text:
            raise T2TError(
                f"--clean: its rules are for text, which the targets of {self.name} are not; leave it out"
            )
        if config.separate_vocabularies and not self.targets_are_text:
            raise T2TError(
                f"--separate_vocabularies: inputs and targets of {self.name} share words; leave it out"
            )
        if config.make_alignments and not self.targets_are_text:
            raise T2TError(f"--make_alignments: the targets of {self.name} have no words; leave it out")
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

    @property
    def requested_mixture(self) -> Mixture | None:
        """The mixture of `data_source`; `None` where that is one source, or the data's own."""
        lists = self.config.data_source and is_mixture(self.config.data_source)
        return self.mixture(str(self.config.data_source)) if lists else None

    def mixture(self, data_source: str) -> Mixture:
        """Returns the corpora of a `--data_source`; raises T2TError if it is no valid list."""
        return parse(data_source)

    def corpus_source(self, corpus: Corpus, tmp_dir: Path | None) -> Source:
        """Returns the source of a corpus; raises T2TError as `make_source`."""
        if corpus.languages:
            raise T2TError(
                f"corpus {corpus.name!r}: languages are for problems of several, such as translate_many; "
                f"{self.name} has one pair"
            )
        return self._make_source(corpus.source, tmp_dir)

    @property
    def _files_name(self) -> str:
        name = self.dataset_filename()
        return f"{name}.{self._corpus}" if self._corpus else name

    def has_data(self, data_dir: str | Path) -> bool:
        path = metadata_path(path_of(data_dir, "data_dir"), self._files_name)
        mixture = self.requested_mixture
        if not (path.is_file() and mixture):
            return path.is_file()
        if not all(self._view(corpus.name).has_data(data_dir) for corpus in mixture.corpora):
            return False
        weights = Metadata.load(path).corpora
        return weights == self.metadata(data_dir).corpora

    def metadata(self, data_dir: str | Path) -> Metadata:
        """Returns the source, the vocabulary and the counts of the data in `data_dir`.

        Raises:
            T2TError: there is none, or it was made from another source or with another vocabulary than this
                problem has.
        """
        folder = path_of(data_dir, "data_dir")
        path = metadata_path(folder, self._files_name)
        if not path.is_file():
            held = f" (it holds {others[0].held})" if (others := other_data(folder, self._files_name)) else ""
            raise T2TError(f"no data for {self.name} in {folder}{held}: run ", self.datagen_command(folder))
        found = Metadata.load(path)
        source_name = None
        if mixture := self.requested_mixture:
            found = self._mixed(mixture, found, folder)
        elif self.config.data_source:
            requested = self._make_source(self.config.data_source, self.config.tmp_dir)
            if (source_name := requested.name) != found.source:
                requested.check()
        self.config.check(folder, found, source_name)
        return found

    def _mixed(self, mixture: Mixture, found: Metadata, folder: Path) -> Metadata:
        """The metadata of the mixture that is asked for, given those of the data's own mixture."""
        if not found.corpora:
            raise not_mixed(found, folder)
        corpora = {}
        for corpus in mixture.corpora:
            view = self._view(corpus.name)
            if not view.has_data(folder):
                raise T2TError(
                    f"{folder} lacks the corpus {corpus.name!r}: run ", self.datagen_command(folder)
                )
            corpora[corpus.name] = view.metadata(folder)
            source = self.corpus_source(corpus, self.config.tmp_dir)
            DataConfig().check(folder, corpora[corpus.name], corpus.source_name(source.name))
        return summed(found.name, str(self.config.data_source), mixture, corpora)

    def check_origins(self, data_dir: str | Path) -> list[str]:
        """Checks that what the data was made of has not changed; returns lines on what cannot be checked.

        Raises:
            T2TError: a file of the source, its version, a given vocabulary or a list of corpora has changed.
        """
        folder = Path(data_dir).expanduser()
        found = Metadata.load(metadata_path(folder, self._files_name))
        if found.corpora:
            return self._check_corpora(found, folder)
        note = check_origins(folder, found, lambda: self._make_source(found.source, self.config.tmp_dir))
        return [note] if note else []

    def _check_corpora(self, found: Metadata, folder: Path) -> list[str]:
        """Checks the origins of a mixture's corpora, and that its list of them is the same."""
        data_source = self.config.data_source or found.source
        if data_source.endswith(SUFFIXES) and not Path(data_source).expanduser().exists():
            return [f"{data_source} is not here: whether its corpora have changed cannot be checked"]
        asked = copy.copy(self)
        asked.config = self.config.replace(data_source=data_source)
        if not asked.has_data(folder):
            raise T2TError(
                f"{data_source} has changed since {found.name} in {folder} was made of it: to take that "
                f"over, give --data_source={data_source}"
            )
        notes = []
        for corpus in self.mixture(data_source).corpora:
            made = self._view(corpus.name).metadata(folder)
            make_source = partial(self.corpus_source, corpus, self.config.tmp_dir)
            notes.append(check_origins(folder, made, make_source))
        return [note for note in notes if note]

    def corpora(self: Self, split: str, data_dir: str | Path) -> dict[str, Self]:
        """Returns the problems of a mixture's corpora that have a split, by name.

        Each is this problem on the data of one corpus. Data of one source is one problem with the name "".
        """
        metadata = self.metadata(data_dir)
        if not metadata.corpora:
            return {"": self}
        views = {name: self._view(name) for name in metadata.corpora}
        return {name: view for name, view in views.items() if split in view.metadata(data_dir).splits}

    def _view(self: Self, corpus: str) -> Self:
        view = copy.copy(self)
        view._corpus = corpus
        view.config = DataConfig(tmp_dir=self.config.tmp_dir)
        return view

    def vocabularies(self, data_dir: str | Path) -> Vocabularies:
        """Returns the vocabularies of inputs and targets.

        Raises:
            T2TError: one is missing, corrupt, or not that with which the shards were made.
        """
        metadata = self.metadata(data_dir)
        return Vocabularies.open(data_metadata.check_vocabularies(path_of(data_dir, "data_dir"), metadata))

    def vocabulary(self, data_dir: str | Path) -> TextEncoder:
        """Returns the vocabulary of the inputs, which most problems share with the targets."""
        return self.vocabularies(data_dir).inputs

    def feature_encoders(self, data_dir: str | Path) -> dict[str, TextEncoder]:
        """Implements `Problem.feature_encoders`; both are the same object unless they are separate."""
        return self.vocabularies(data_dir)._asdict()

    def shards(self, split: str, data_dir: str | Path) -> SplitData:
        """Returns the examples of a split, of all corpora.

        Raises:
            T2TError: there is no such split, or a shard is missing or truncated.
        """
        folder, metadata = path_of(data_dir, "data_dir"), self.metadata(data_dir)
        if split not in metadata.splits:
            raise T2TError(
                f"{self.name} in {folder} has no {split} split; it has {', '.join(metadata.splits)}"
            )
        parts = []
        for name, corpus in self.corpora(split, folder).items():
            counts = corpus.metadata(folder).splits[split]
            paths = shard_paths(folder, corpus._files_name, split)
            data_metadata.check_sizes(paths, counts)
            parts.append(CorpusShards(name, paths, counts.examples, metadata.corpora.get(name, 1.0)))
        return SplitData(parts, weighted=metadata.weighted, aligned=metadata.aligned)

    def data_fingerprint(self, split: str, data_dir: str | Path) -> str:
        """Returns 8 hexadecimal digits that differ for different examples, references or vocabularies."""
        paths = self.shards(split, data_dir).paths
        references = references_path(path_of(data_dir, "data_dir"), self._files_name, split)
        if references.is_file():
            paths.append(references)
        vocabularies = "".join(made.fingerprint for made in self.metadata(data_dir).vocabularies)
        return data_metadata.data_fingerprint(paths, vocabularies)
