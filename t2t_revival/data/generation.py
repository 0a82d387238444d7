"""Data generation: from the corpora of a problem to a data_dir, resumable and repairable.

A data_dir is of a list of corpora. One source is a list of one corpus, whose name is "".

PROBLEM-SPLIT-00000-of-00010 ...            the examples of one source
PROBLEM.meta.json                           its source, vocabularies and counts
PROBLEM.CORPUS-*, PROBLEM.CORPUS.meta.json  the same of each of several corpora
PROBLEM.meta.json                           names and weights of several corpora, sums of their counts
vocab.PROBLEM.SIZE.spm                      the vocabulary of all corpora, or one for each side

`corpus_generation` has the steps of each corpus, `vocabulary_step` that of all.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from t2t_revival.data.base_source import DEV, SPLITS, TRAIN
from t2t_revival.data.config import DataSpec
from t2t_revival.data.corpus_generation import (
    CorpusGeneration,
    OnProgress,
    created,
    generation_lock,
    other_data,
    read_plan,
    remove_data,
    remove_temporary,
)
from t2t_revival.data.metadata import Metadata, SplitCounts, metadata_path, unfinished_dir
from t2t_revival.data.mixture import SUFFIXES, Corpus, Mixture, symbol
from t2t_revival.data.vocabulary import open_vocabulary
from t2t_revival.data.vocabulary.extension import no_symbols
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary, as_piece
from t2t_revival.data.vocabulary_step import VocabularyStep
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import check_file_name, is_file_name
from t2t_revival.utils.origins import Origins


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
    work_dir = unfinished_dir(data_dir, spec.name)
    with created(data_dir, work_dir):
        mixture = _mixture(spec, data_dir)
        names = dict.fromkeys([spec.name, *(corpus.files_name(spec.name) for corpus in mixture.corpora)])
        plans = {name: plan for name in names if (plan := read_plan(name, data_dir))}
        if plans:
            spec = as_before(spec, next(iter(plans.values())))
        corpora = [
            CorpusGeneration(
                spec, corpus, plans.get(corpus.files_name(spec.name)), data_dir, tmp_dir, progress
            )
            for corpus in mixture.corpora
        ]
        if plans:
            plans = _checked_or_removed(spec, mixture, corpora, plans, data_dir)
        if missing := [corpus for corpus in corpora if not corpus.is_complete()]:
            with generation_lock(data_dir), _cleaned_after_failure(missing, mixture, work_dir):
                progress("reading", 0, 0)
                remove_temporary(data_dir, spec.name)
                for corpus in missing:
                    corpus.read_source()
                if not any(DEV in corpus.plan.pairs for corpus in corpora):
                    source = spec.config.data_source
                    raise T2TError(f"--data_source={source}: no corpus has a dev split; one must have it")
                on_training = partial(
                    progress, "vocabulary", 0, sum(each.plan.pairs[TRAIN] for each in corpora)
                )
                step = VocabularyStep(spec, mixture, corpora, data_dir, work_dir, on_training)
                vocabularies = _vocabularies(step, next(iter(plans.values()), None))
                for corpus in missing:
                    if not mixture.is_single:
                        progress(f"corpus {corpus.corpus.name}: {corpus.source_name}", 0, 0)
                    corpus.make(vocabularies, shard_runner)
                shutil.rmtree(work_dir, ignore_errors=True)
        if mixture.is_single:
            return corpora[0].plan
        made = {corpus.corpus.name: corpus.plan for corpus in corpora}
        metadata = summed(spec.name, _lasting_name(spec, corpora), mixture, made)
        if metadata != plans.get(spec.name):
            metadata.save(metadata_path(data_dir, spec.name))
        return metadata


def _mixture(spec: DataSpec, data_dir: Path) -> Mixture:
    """Returns the requested corpora; without a request, those that the data_dir was begun with."""
    made, data_source = read_plan(spec.name, data_dir), spec.config.data_source
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


def as_before(spec: DataSpec, plan: Metadata) -> DataSpec:
    """Returns the spec of data that is made as other was, where it says nothing else."""
    config = spec.config
    separate = config.separate_vocabularies
    config = config.replace(
        data_source=config.data_source or plan.source,
        clean=plan.clean if config.clean is None else config.clean,
        separate_vocabularies=len(plan.vocabularies) > 1 if separate is None else separate,
    )
    return dataclasses.replace(spec, config=config)


def _checked_or_removed(
    spec: DataSpec,
    mixture: Mixture,
    corpora: Sequence[CorpusGeneration],
    plans: dict[str, Metadata],
    data_dir: Path,
) -> dict[str, Metadata]:
    """Returns the plans that can go on; with `overwrite`, removes data that cannot, or that is finished.

    An unfinished generation can go on that was begun as it is asked for, of files that have not changed: the
    same command resumes also with `overwrite`. Data is kept where the new source cannot be read.
    """
    is_finished = spec.name in plans and bool(plans[spec.name].splits)
    try:
        if not (spec.overwrite and is_finished):
            _check(spec, mixture, corpora, plans, data_dir)
            return plans
    except T2TError:
        if not spec.overwrite:
            raise
    try:
        for corpus in corpora:
            corpus.source.counts()
    except BaseException:
        for corpus in corpora:
            corpus.close()
        raise
    with generation_lock(data_dir):
        for plan in plans.values():
            remove_data(data_dir, plan, spec.config.vocab_file)
    for corpus in corpora:
        corpus.start_again()
    return {}


def _check(
    spec: DataSpec,
    mixture: Mixture,
    corpora: Sequence[CorpusGeneration],
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


@contextmanager
def _cleaned_after_failure(
    corpora: Iterable[CorpusGeneration], mixture: Mixture, work_dir: Path
) -> Iterator[None]:
    """Removes what is not data after a failure."""
    try:
        yield
    except BaseException:
        for corpus in corpora:
            corpus.clean_unless_begun()
        if not mixture.is_single:  # whose folder has no plan
            shutil.rmtree(work_dir, ignore_errors=True)
        raise


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
