"""Data generation: from the corpora of a problem to a data_dir, resumable and repairable.

A data_dir is of a list of corpora. One source is a list of one corpus, whose name is "".

PROBLEM-SPLIT-00000-of-00010 ...            the examples of one source
PROBLEM.meta.json                           its source, vocabularies and counts
PROBLEM.CORPUS-*, PROBLEM.CORPUS.meta.json  the same of each of several corpora
PROBLEM.meta.json                           names and weights of several corpora, sums of their counts
vocab.PROBLEM.SIZE.spm                      the vocabulary of all corpora, or one for each side

`corpus_generation` has the steps of each corpus, `VocabularyStep` that of all: it copies the given
vocabularies, or trains them on a sample.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import chain
from pathlib import Path

from t2t_revival.data import corpus_generation
from t2t_revival.data.base_source import DEV, SPLITS, TRAIN, Row
from t2t_revival.data.cleaning import passes_rules
from t2t_revival.data.config import DataSpec, Metadata, SplitCounts, metadata_path, unfinished_dir
from t2t_revival.data.mixture import SUFFIXES, Corpus, CorpusRows, Mixture
from t2t_revival.data.vocabulary import TextEncoder, copy_name, open_vocabulary
from t2t_revival.data.vocabulary.extension import extend, no_symbols
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary, VocabularyTooLargeError, as_piece
from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write, check_file_name, is_file_name
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
    corpora: Sequence[corpus_generation.CorpusGeneration]
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
        kinds = {corpus.source.kind for corpus in self.corpora}
        kind = kinds.pop() if len(kinds) == 1 else "folder"
        pairs = sum(corpus.plan.pairs[TRAIN] for corpus in self.corpora)
        size = config.vocab_size or known_size or self.spec.default_vocab_size(kind, pairs)
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
    progress: corpus_generation.OnProgress | None,
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
    with corpus_generation.created(data_dir, unfinished_dir(data_dir, spec.name)):
        make = partial(_generate, spec, data_dir, tmp_dir, progress, shard_runner)
        if metadata_path(data_dir, spec.name).is_file() and (made := make(is_locked=False)):
            return made  # complete: many processes may read it at the same time
        with corpus_generation.generation_lock(data_dir, progress):
            made = make(is_locked=True)
            assert made
            return made


def _generate(
    spec: DataSpec,
    data_dir: Path,
    tmp_dir: Path,
    progress: corpus_generation.OnProgress,
    shard_runner: ShardRunner,
    *,
    is_locked: bool,
) -> Metadata | None:
    """Makes what is missing; returns the metadata, or `None` where that needs the lock of the data_dir."""
    work_dir = unfinished_dir(data_dir, spec.name)
    mixture = _mixture(spec, data_dir)
    names = dict.fromkeys([spec.name, *(corpus.files_name(spec.name) for corpus in mixture.corpora)])
    plans = {name: plan for name in names if (plan := corpus_generation.read_plan(name, data_dir))}
    if plans:
        before, config = next(iter(plans.values())), spec.config
        separate = config.separate_vocabularies
        config = dataclasses.replace(  # as the data was made, where it says nothing else
            config,
            data_source=config.data_source or before.source,
            clean=before.clean if config.clean is None else config.clean,
            separate_vocabularies=len(before.vocabularies) > 1 if separate is None else separate,
            normalize=config.normalize or before.normalize,
        )
        spec = dataclasses.replace(spec, config=config)
    corpora = [
        corpus_generation.CorpusGeneration(
            spec, corpus, plans.get(corpus.files_name(spec.name)), data_dir, tmp_dir, progress
        )
        for corpus in mixture.corpora
    ]
    if plans and _is_to_be_removed(spec, mixture, corpora, plans, data_dir):
        if not is_locked:
            return None
        _remove(spec, corpora, plans, data_dir)
        plans = {}
    if missing := [corpus for corpus in corpora if not corpus.is_complete()]:
        if not is_locked:
            return None
        with ExitStack() as after_failure:
            if not mixture.is_single:  # whose folder has no plan
                after_failure.callback(shutil.rmtree, work_dir, ignore_errors=True)
            for corpus in missing:
                after_failure.callback(corpus.clean_unless_begun)
            progress("reading", 0, 0)
            patterns = (f".{spec.name}-*.tmp", f".{spec.name}.*.tmp", f".vocab.{spec.name}.*.tmp")
            for path in chain.from_iterable(map(data_dir.glob, patterns)):  # of a write that was killed
                path.unlink(missing_ok=True)
            for corpus in missing:
                corpus.read_source()
            if not any(DEV in corpus.plan.pairs for corpus in corpora):
                source = spec.config.data_source
                raise T2TError(f"--data_source={source}: no corpus has a dev split; one must have it")
            on_training = partial(progress, "vocabulary", 0, sum(each.plan.pairs[TRAIN] for each in corpora))
            step = VocabularyStep(spec, mixture, corpora, data_dir, work_dir, on_training)
            vocabularies = _vocabularies(step, next(iter(plans.values()), None))
            for corpus in missing:
                if not mixture.is_single:
                    progress(f"corpus {corpus.corpus.name}: {corpus.source_name}", 0, 0)
                corpus.make(vocabularies, shard_runner)
            shutil.rmtree(work_dir, ignore_errors=True)
            after_failure.pop_all()
    if mixture.is_single:
        return corpora[0].plan
    made = {corpus.corpus.name: corpus.plan for corpus in corpora}
    metadata = summed(spec.name, _lasting_name(spec, corpora), mixture, made)
    if metadata != plans.get(spec.name):
        metadata.save(metadata_path(data_dir, spec.name))
    return metadata


def _mixture(spec: DataSpec, data_dir: Path) -> Mixture:
    """Returns the requested corpora; without a request, those that the data_dir was begun with."""
    made, data_source = corpus_generation.read_plan(spec.name, data_dir), spec.config.data_source
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
    if foreign := [
        other for other in corpus_generation.other_data(data_dir, spec.name) if other.source != default
    ]:
        asked = f"--data_source={spec.default_source or 'FOLDER'}"
        raise T2TError(
            f"{data_dir} holds {foreign[0].held}, and no data of {spec.name}: give "
            f"--problem={foreign[0].name}, or {asked} to make data of {spec.name} beside it"
        )
    return spec.default_source


def _is_to_be_removed(
    spec: DataSpec,
    mixture: Mixture,
    corpora: Sequence[corpus_generation.CorpusGeneration],
    plans: Mapping[str, Metadata],
    data_dir: Path,
) -> bool:
    """Returns whether `overwrite` removes data: what cannot go on, or is finished; checks it otherwise.

    An unfinished generation can go on that was begun as it is asked for, of files that have not changed: the
    same command resumes also with `overwrite`.
    """
    is_finished = spec.name in plans and bool(plans[spec.name].splits)
    try:
        if not (spec.overwrite and is_finished):
            _check(spec, mixture, corpora, plans, data_dir)
            return False
    except T2TError:
        if not spec.overwrite:
            raise
    return True


def _remove(
    spec: DataSpec,
    corpora: Sequence[corpus_generation.CorpusGeneration],
    plans: Mapping[str, Metadata],
    data_dir: Path,
) -> None:
    """Removes data; it is kept where the new source cannot be read."""
    try:
        for corpus in corpora:
            corpus.source.counts()
    except BaseException:
        for corpus in corpora:
            corpus.close()
        raise
    for plan in plans.values():
        corpus_generation.remove_data(data_dir, plan, spec.config.vocab_file)
    for corpus in corpora:
        corpus.start_again()


def _check(
    spec: DataSpec,
    mixture: Mixture,
    corpora: Sequence[corpus_generation.CorpusGeneration],
    plans: Mapping[str, Metadata],
    data_dir: Path,
) -> None:
    """Checks that data was made as requested, of what has not changed, and that its vocabulary has all tags.

    All plans have the same vocabularies. An interrupted generation may have left some corpora alone.
    """
    if not mixture.is_single:
        if spec.name in plans and not plans[spec.name].corpora:
            raise not_mixed(plans[spec.name], data_dir)
        plan = next(iter(plans.values()))
        spec.config.check(data_dir, plan, None)
        if mixture.tags and (path := data_dir / plan.vocab_file).exists():
            vocabulary = open_vocabulary(path)
            known = vocabulary.pieces if isinstance(vocabulary, Vocabulary) else []
            if missing := [tag for tag in mixture.tags if as_piece(symbol(tag)) not in known]:
                if not isinstance(vocabulary, Vocabulary):
                    raise no_symbols(vocabulary, missing)
                raise T2TError(
                    f"--data_source={spec.config.data_source}: tag {missing[0]!r} is not in {path}: give "
                    "another --data_dir, where a new vocabulary has it, or add it there with "
                    f"--vocab_file={path} --update_vocab"
                )
    for corpus in corpora:
        corpus.check()


def not_mixed(metadata: Metadata, data_dir: Path) -> T2TError:
    """Returns the error of data from one source, where a mixture is asked for."""
    return T2TError(
        f"{data_dir} holds {metadata.name} made from {metadata.source}, which is no mixture: give another "
        "--data_dir"
    )


def _vocabularies(step: VocabularyStep, made: Metadata | None) -> list[Path]:
    """Returns the files of the vocabularies of data that was made, or begins data with new ones.

    New ones are moved to their own names after the plans are written: a failure before that does not bind the
    data_dir to a source or a vocabulary size.
    """
    known, data_dir = made.vocabularies if made else [], step.data_dir
    if made and known and all((data_dir / file.name).exists() for file in known):
        vocabularies = made.open_vocabularies(data_dir).all
        for corpus in step.corpora:
            corpus.begin(vocabularies)
        return [vocabulary.path for vocabulary in vocabularies]
    step.work_dir.mkdir(exist_ok=True)
    new = step.make([file.size for file in known])
    for old, vocabulary in zip(known, new, strict=False):
        if old.fingerprint != vocabulary.fingerprint:
            raise T2TError(
                f"{data_dir / old.name} was missing, and {step.spec.config.data_source} yields another "
                "vocabulary than before; put the old file back or give another --data_dir"
            )
    for corpus in step.corpora:
        corpus.begin(new)
    return [each.path.replace(data_dir / each.path.name) for each in new]


def _lasting_name(spec: DataSpec, corpora: Iterable[corpus_generation.CorpusGeneration]) -> str:
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
