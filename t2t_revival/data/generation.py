"""Data generation: from the corpora of a problem to a data_dir, resumable and repairable.

A data_dir is of a list of corpora. One source is a list of one corpus, whose name is "".

PROBLEM-SPLIT-00000-of-00010 ...            the examples of one source
PROBLEM.meta.json                           its source, vocabularies and counts
PROBLEM.CORPUS-*, PROBLEM.CORPUS.meta.json  the same of each of several corpora
PROBLEM.meta.json                           names and weights of several corpora, sums of their counts
vocab.PROBLEM.SIZE.spm                      the vocabulary of all corpora, or one for each side

`corpus_generation` has the steps of each corpus, `Generation` those of all: it copies the given vocabularies,
or trains them on a sample.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from t2t_revival.data.base_source import DEV, SPLITS, TRAIN, Row
from t2t_revival.data.cleaning import passes_rules
from t2t_revival.data.config import DataSpec, Metadata, SplitCounts, metadata_path, unfinished_dir
from t2t_revival.data.corpus_generation import (
    PLAN,
    CorpusGeneration,
    OnProgress,
    other_data,
    read_plan,
    remove_data,
)
from t2t_revival.data.mixture import SUFFIXES, Corpus, CorpusRows, Mixture
from t2t_revival.data.vocabulary import TextEncoder, copy_name, open_vocabulary
from t2t_revival.data.vocabulary.extension import check_symbols, extend
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary, VocabularyTooLargeError
from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import (
    check_file_name,
    exclusive_lock,
    is_file_name,
    make_folder,
    write_whole,
    writing,
)
from t2t_revival.utils.origins import Origins

SAMPLE_CHARACTERS = 20_000_000  # of both sides together, on which a vocabulary is trained
SAMPLE_REGIONS = 100  # evenly spread over the corpus, from which these are taken
NO_LANGUAGES = ("inputs", "targets")


class Side(Enum):
    """The part of a row for which a vocabulary is."""

    BOTH = slice(0, 2)
    INPUTS = slice(0, 1)
    TARGETS = slice(1, 2)


@dataclass(frozen=True)
class Generation:
    """The data of a problem in a data_dir, which is locked.

    Attributes:
        spec: of the data.
        mixture: its corpora.
        corpora: the same, as far as they are made.
        data_dir: a vocabulary of the right name that is there is used, as in T2T.
        progress: see `generate`.
    """

    spec: DataSpec
    mixture: Mixture
    corpora: Sequence[CorpusGeneration]
    data_dir: Path
    progress: OnProgress

    @property
    def work_dir(self) -> Path:
        """The folder for what is not finished."""
        return unfinished_dir(self.data_dir, self.spec.name)

    def kept_vocabularies(self, plans: Mapping[str, Metadata]) -> list[TextEncoder]:
        """Checks data that is there and returns its vocabularies; removes what `overwrite` replaces.

        That is what is finished, or cannot go on. An unfinished generation can go on that was begun as it is
        asked for, of files that have not changed: the same command resumes also with `overwrite`.

        Raises:
            T2TError: data was made otherwise, or of what has changed. Or the new source cannot be read: then
                nothing is removed.
        """
        overwrite, is_finished = self.spec.overwrite, "" in plans and bool(plans[""].splits)
        try:
            if not (overwrite and is_finished):
                return self._checked_vocabularies(plans)
        except T2TError:
            if not overwrite:
                raise
        for corpus in self.corpora:
            corpus.source.counts()
            corpus.start_again()
        remove_data(self.data_dir, self.spec.name, self.spec.config.vocab_file)
        return []

    def _checked_vocabularies(self, plans: Mapping[str, Metadata]) -> list[TextEncoder]:
        """Checks that data was made as requested, of what has not changed; opens its vocabularies.

        All plans have the same ones, which a process may not have moved before it was killed. An interrupted
        generation may have left some corpora alone.
        """
        made = next(iter(plans.values()))
        if not self.mixture.is_single:
            if "" in plans and not plans[""].corpora:
                raise not_mixed(plans[""], self.data_dir)
            self.spec.config.check(self.data_dir, made, None)
        for corpus in self.corpora:
            corpus.check()
        for file in made.vocabularies:
            with suppress(FileNotFoundError):
                (self.work_dir / file.name).rename(self.data_dir / file.name)
        return made.open_vocabularies(self.data_dir).all

    def make_missing(self, known: list[TextEncoder], shard_runner: ShardRunner) -> None:
        """Makes what is missing; `known` are the vocabularies of a corpus that was begun, if there is one.

        New vocabularies are moved to their own names after the plans are written: a failure before that does
        not bind the data_dir to a source or a vocabulary size.
        """
        missing = [corpus for corpus in self.corpora if not corpus.is_complete()]
        if not missing:
            return
        self.progress("reading", 0, 0)
        self.remove_work_dir()  # of a process that was killed
        with writing(f"--data_dir={self.data_dir}", "give another"):
            self.work_dir.mkdir(exist_ok=True)
        for corpus in missing:
            corpus.read_source()
        if not any(DEV in corpus.plan.pairs for corpus in self.corpora):
            source = self.spec.config.data_source
            raise T2TError(f"--data_source={source}: no corpus has a dev split; one must have it")
        vocabularies = self._vocabularies(known)
        for corpus in missing:
            corpus.begin(vocabularies)
        files = [each.path.replace(self.data_dir / each.path.name) for each in vocabularies]
        for corpus in missing:
            if not self.mixture.is_single:
                self.progress(f"corpus {corpus.corpus.name}: {corpus.source_name}", 0, 0)
            corpus.make(files, shard_runner)

    def metadata(self, made: Metadata | None) -> Metadata:
        """Returns the metadata of complete data; that of a mixture is written unless `made` is the same."""
        if self.mixture.is_single:
            return self.corpora[0].plan
        name, corpora = self.spec.name, {corpus.corpus.name: corpus.plan for corpus in self.corpora}
        metadata = summed(name, _lasting_name(self.spec, self.corpora), self.mixture, corpora)
        if metadata != made:
            metadata.save(metadata_path(self.data_dir, name))
        return metadata

    def remove_work_dir(self) -> None:
        """Removes the folder for what is not finished, unless a corpus has its plan there."""
        if not any(self.work_dir.glob(f"*{PLAN}")):
            shutil.rmtree(self.work_dir, ignore_errors=True)

    def _vocabularies(self, known: list[TextEncoder]) -> list[TextEncoder]:
        """Returns the vocabulary of both sides, or those of inputs and targets; new ones are in `work_dir`.

        Raises:
            T2TError: a vocabulary is corrupt or lacks symbols, or none can be trained.
        """
        if self.mixture.is_single and not known:
            self.corpora[0].apply_rules()
        separate = self.spec.config.separate_vocabularies
        sides = (Side.INPUTS, Side.TARGETS) if separate else (Side.BOTH,)
        found = known or list(map(self._vocabulary, sides))
        for vocabulary, side in zip(found, sides, strict=True):
            check_symbols(vocabulary, self._symbols(side))
        return found

    def _vocabulary(self, side: Side) -> TextEncoder:
        config = self.spec.config
        if config.vocab_file:
            given = config.vocab_file[-1 if side is Side.TARGETS else 0]
            return self._updated(given, side) if config.update_vocab else self._copied(given)
        kinds = {corpus.source.kind for corpus in self.corpora}
        kind = kinds.pop() if len(kinds) == 1 else "folder"
        pairs = sum(corpus.plan.pairs[TRAIN] for corpus in self.corpora)
        size = config.vocab_size or self.spec.default_vocab_size(kind, pairs)
        existing = self.data_dir / f"{self._name(side)}.{size}.spm"
        return Vocabulary(existing) if existing.exists() else self._trained(side, size)

    def _on_training(self) -> None:
        self.progress("vocabulary", 0, sum(corpus.plan.pairs[TRAIN] for corpus in self.corpora))

    def _updated(self, given: Path, side: Side) -> TextEncoder:
        """Returns a vocabulary to which the pieces that the text needs are added."""
        self._on_training()
        vocabulary, name = open_vocabulary(given), self._name(side)
        new = self.work_dir / f"{name}.new{Path(copy_name(given)).suffix}"
        size = self.spec.config.vocab_size
        updated = extend(vocabulary, self.text(side), new, size, self._symbols(side))
        return open_vocabulary(new.rename(self.work_dir / f"{name}.{updated.size}{new.suffix}"))

    def _copied(self, given: Path) -> TextEncoder:
        vocabulary = open_vocabulary(given)
        write_whole(self.work_dir / copy_name(given), vocabulary.content)
        return open_vocabulary(self.work_dir / copy_name(given))

    def _trained(self, side: Side, size: int) -> TextEncoder:
        self._on_training()
        lines, symbols, name = list(self.text(side)), self._symbols(side), self._name(side)
        try:
            return Vocabulary.train(lines, self.work_dir / f"{name}.{size}.spm", size, symbols)
        except VocabularyTooLargeError as error:
            if self.spec.config.vocab_size:
                where = "" if side is Side.BOTH else f"{self._language(side)}: "
                raise T2TError(where, error) from error
            size = error.max_size
            return Vocabulary.train(lines, self.work_dir / f"{name}.{size}.spm", size, symbols)

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


def generate(
    spec: DataSpec,
    data_dir: Path,
    tmp_dir: Path | None,
    progress: OnProgress | None,
    shard_runner: ShardRunner = make_shards,
) -> Metadata:
    """Makes the missing parts of a problem's data and returns the metadata, as written.

    Corpora that are complete are verified and kept. A vocabulary is learned from all corpora by weight, the
    first time; those that are added later are cut by it.

    Args:
        spec: the data to make.
        data_dir: its folder; created if missing.
        tmp_dir: the folder for unpacked files. `None` uses `data_dir/tmp`.
        progress: called with a stage, the number of pairs done and their total. A stage is "verifying",
            "reading", "cleaning", "vocabulary", "aligning", "pairs", or a line for people: of a corrupt
            shard, a download, origins that cannot be checked, or a corpus of several that is begun. The
            pairs of train are also counted after "cleaning".
        shard_runner: makes the shards, here or on other machines.

    Raises:
        T2TError: a source cannot be read, or a file of it has changed since the data was made; the data_dir
            cannot be written, holds data of another source, vocabulary or problem, or is in use; a name is
            not a valid file name; no corpus has a dev split.
    """
    if not is_file_name(spec.name):
        raise T2TError(
            f"problem {spec.name!r}: not a valid file name, and its files begin with it; rename the problem"
        )
    for given in spec.config.vocab_file:
        check_file_name(given)
    tmp_dir = tmp_dir or data_dir / "tmp"
    progress = progress or (lambda stage, done, total: None)
    with _locked(data_dir, progress):
        mixture = _mixture(spec, data_dir)
        names = dict.fromkeys(["", *(corpus.name for corpus in mixture.corpora)])
        plans = {name: plan for name in names if (plan := read_plan(data_dir, spec.name, name))}
        spec = _as_made(spec, plans)
        corpora = [
            CorpusGeneration(spec, corpus, plans.get(corpus.name), data_dir, tmp_dir, progress)
            for corpus in mixture.corpora
        ]
        generation = Generation(spec, mixture, corpora, data_dir, progress)
        try:
            known = generation.kept_vocabularies(plans) if plans else []
            generation.make_missing(known, shard_runner)
            for corpus in corpora:
                corpus.plan_file.unlink(missing_ok=True)
        finally:
            for corpus in corpora:
                corpus.source.close()
            with suppress(OSError):  # missing or not empty
                tmp_dir.rmdir()
            generation.remove_work_dir()
        return generation.metadata(plans.get("") if known else None)


@contextmanager
def _locked(data_dir: Path, progress: OnProgress) -> Iterator[None]:
    """Creates a data_dir and locks it; after a failure, removes it and its new parents if empty.

    Another process that generates data there is waited for, which is said. A worker that begins does not
    wait: it runs the script again whose process holds the lock.

    Raises:
        T2TError: the folder cannot be created; or this is such a worker, and another process holds the lock.
    """
    new = [folder for folder in (data_dir, *data_dir.parents) if not folder.exists()]
    busy = f"{data_dir}: another process is generating data there"
    begins = getattr(multiprocessing.current_process(), "_inheriting", False)  # as multiprocessing asks
    refusal = f"{busy}; wait for it" if begins else None
    with writing(f"--data_dir={data_dir}", "give another"):
        make_folder(data_dir)
    with exclusive_lock(data_dir, refusal, lambda: progress(f"{busy}; waiting for it", 0, 0)):
        try:
            yield
        except BaseException:
            with suppress(OSError):  # not empty
                for folder in new:
                    folder.rmdir()
            raise


def _as_made(spec: DataSpec, plans: Mapping[str, Metadata]) -> DataSpec:
    """Returns the spec with the settings of data that is there, where it says nothing else."""
    if not plans:
        return spec
    before, config = next(iter(plans.values())), spec.config
    separate = config.separate_vocabularies
    config = dataclasses.replace(
        config,
        data_source=config.data_source or before.source,
        clean=before.clean if config.clean is None else config.clean,
        separate_vocabularies=len(before.vocabularies) > 1 if separate is None else separate,
        normalize=config.normalize or before.normalize,
    )
    return dataclasses.replace(spec, config=config)


def _mixture(spec: DataSpec, data_dir: Path) -> Mixture:
    """Returns the requested corpora; without a request, those that the data_dir was begun with."""
    made, data_source = read_plan(data_dir, spec.name), spec.config.data_source
    if made and not data_source and not made.corpora:
        return Mixture((Corpus("", made.source),))
    mixture = spec.mixture(data_source or (made.source if made else _default_source(spec, data_dir)))
    if spec.references and not mixture.is_single:
        raise T2TError(f"--data_source={data_source}: {spec.name} takes one source, not several corpora")
    return mixture


def _default_source(spec: DataSpec, data_dir: Path) -> str:
    """Returns the default source, unless the data_dir holds other problems' data of other sources.

    Raises:
        T2TError: it does, so that a problem or a source seems to be forgotten.
    """
    default = spec.default_source and spec.make_source(Corpus("", spec.default_source), None).name
    if foreign := [other for other in other_data(data_dir, spec.name) if other.source != default]:
        asked = f"--data_source={spec.default_source or 'FOLDER'}"
        raise T2TError(
            f"{data_dir} holds {foreign[0].held}, and no data of {spec.name}: give "
            f"--problem={foreign[0].name}, or {asked} to make data of {spec.name} beside it"
        )
    return spec.default_source


def not_mixed(metadata: Metadata, data_dir: Path) -> T2TError:
    """Returns the error of data from one source, where a mixture is asked for."""
    return T2TError(
        f"{data_dir} holds {metadata.name} made from {metadata.source}, which is no mixture: give another "
        "--data_dir"
    )


def _lasting_name(spec: DataSpec, corpora: Iterable[CorpusGeneration]) -> str:
    """Returns a `--data_source` of the same mixture that does not depend on the current folder."""
    data_source = spec.config.data_source or ""
    if data_source.endswith(SUFFIXES):
        return str(Path(data_source).expanduser().resolve())
    return ",".join(
        f"{each.corpus.name}={each.source.name}"
        + ("" if each.corpus.weight is None else f":{each.corpus.weight:.15g}")
        for each in corpora
    )


def summed(name: str, data_source: str, mixture: Mixture, corpora: dict[str, Metadata]) -> Metadata:
    """Returns the metadata of a mixture, given those of its corpora."""
    made = list(corpora.values())
    splits = [split for split in SPLITS if any(split in each.splits for each in made)]
    return dataclasses.replace(
        made[0],
        name=name,
        source=data_source,
        origins=Origins(),
        pairs={split: sum(each.pairs.get(split, 0) for each in made) for split in splits},
        splits={
            split: sum((each.splits[split] for each in made if split in each.splits), SplitCounts())
            for split in splits
        },
        corpora=mixture.weights({name: each.splits[TRAIN].examples for name, each in corpora.items()}),
        tags=mixture.tags,
        weighted=any(each.weighted for each in made),
        aligned=any(each.aligned for each in made),
        source_lang=",".join(dict.fromkeys(each.source_lang for each in made)),
        target_lang=",".join(dict.fromkeys(each.target_lang for each in made)),
    )
