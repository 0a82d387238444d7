"""Generation of a mixture: each corpus into shards of its own, with the same vocabulary for all.

PROBLEM.CORPUS.meta.json and PROBLEM.CORPUS-*     the data of a corpus, as of a problem with one source
PROBLEM.meta.json                                 names and weights of the corpora, sums of their counts
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path

from t2t_revival.data.base_source import SPLITS, Source
from t2t_revival.data.cleaning import keeps
from t2t_revival.data.config import DataSpec
from t2t_revival.data.generation import OnProgress, as_before, generate
from t2t_revival.data.generation_folder import created, generation_lock, read_plan, remove_data
from t2t_revival.data.metadata import (
    Metadata,
    SplitCounts,
    metadata_path,
    unfinished_dir,
)
from t2t_revival.data.mixture import SUFFIXES, Corpus, CorpusSource, Mixture
from t2t_revival.data.origin_check import check_origins
from t2t_revival.data.source_checks import counted
from t2t_revival.data.tags import symbol
from t2t_revival.data.vocabulary import TextEncoder, open_vocabulary
from t2t_revival.data.vocabulary.extension import no_symbols
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary, as_piece
from t2t_revival.data.vocabulary_step import (
    BOTH_SIDES,
    INPUTS,
    SAMPLE_CHARACTERS,
    TARGETS,
    make_vocabulary,
    sample_lines,
)
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.utils.origins import Origins

TRAIN, DEV, _ = SPLITS
MakeSource = Callable[[Corpus, Path], Source]


def corpus_name(problem: str, corpus: str) -> str:
    """Returns the name that begins the names of a corpus's files."""
    return f"{problem}.{corpus}"


def generate_mixture(
    spec: DataSpec,
    mixture: Mixture,
    make_source: MakeSource,
    data_dir: Path,
    tmp_dir: Path | None,
    progress: OnProgress | None,
    shard_runner: ShardRunner = make_shards,
) -> Metadata:
    """Makes the missing data of a mixture, and writes its weights.

    Corpora that are complete are verified and kept. A vocabulary is learned from all corpora by weight, the
    first time; those that are added later are cut by it.

    Args:
        spec: of the problem; its data_source is the mixture's.
        mixture: the corpora.
        make_source: called with a corpus and a folder for temporary files; returns the corpus's own source.
        data_dir: its folder; created if missing.
        tmp_dir: the folder for unpacked files. `None` uses `data_dir/tmp`.
        progress: called as by `generation.generate`, and with a line that names each corpus.
        shard_runner: makes the shards.

    Raises:
        T2TError: as `generate`; no corpus has a dev split; the data_dir holds data that is no mixture.
    """
    data_source = spec.config.data_source
    assert data_source
    progress = progress or (lambda stage, done, total: None)
    tmp_dir = tmp_dir or data_dir / "tmp"
    work_dir = unfinished_dir(data_dir, spec.name)
    with created(data_dir, work_dir):
        plans = _plans(spec.name, mixture, data_dir)
        if plans and spec.overwrite:
            spec = as_before(spec, next(iter(plans.values())))
            plans = _cleared(spec, mixture, make_source, plans, data_dir, tmp_dir)
        spec = dataclasses.replace(spec, overwrite=False)
        if "" in plans and not plans[""].corpora:
            raise not_mixed(plans[""], data_dir)
        plan = next(iter(plans.values()), None)
        if plan:
            _check_plan(plan, spec, mixture, data_dir)
            spec = spec.configured(clean=plan.clean)
        sources = {
            corpus.name: CorpusSource(make_source(corpus, tmp_dir), corpus) for corpus in mixture.corpora
        }
        progress("reading", 0, 0)
        pairs = {name: made.pairs for name, made in plans.items()}
        mixed = MixtureSource(data_source, mixture, sources, pairs)
        with closed_after_failure(sources.values()):
            splits = mixed.splits()
        if DEV not in splits:
            raise T2TError(f"--data_source={data_source}: no corpus has a dev split; one must have it")
        if plan:
            vocabularies = [data_dir / each.name for each in plan.vocabularies]
        else:
            vocabularies = _vocabularies(spec, mixed, data_dir, work_dir, progress)
        corpora = {}
        for corpus in mixture.corpora:
            progress(f"corpus {corpus.name}: {sources[corpus.name].name}", 0, 0)
            own = _corpus_spec(spec, corpus, sources[corpus.name], vocabularies)
            corpora[corpus.name] = generate(own, data_dir, tmp_dir, progress, shard_runner)
        metadata = summed(spec.name, _lasting_name(data_source, mixed), mixture, corpora)
        metadata.save(metadata_path(data_dir, spec.name))
        return metadata


@contextmanager
def closed_after_failure(sources: Iterable[Source]) -> Iterator[None]:
    """Removes the sources' temporary files after a failure."""
    try:
        yield
    except BaseException:
        for source in sources:
            source.close()
        raise


def _plans(problem: str, mixture: Mixture, data_dir: Path) -> dict[str, Metadata]:
    """Returns the plans of the mixture in a data_dir, as "", and of its corpora, as far as they were made.

    All have one vocabulary. A generation that was interrupted may have left corpora without a mixture.
    """
    names = {"": problem, **{corpus.name: corpus_name(problem, corpus.name) for corpus in mixture.corpora}}
    return {name: plan for name, files in names.items() if (plan := read_plan(files, data_dir))}


def _cleared(
    spec: DataSpec,
    mixture: Mixture,
    make_source: MakeSource,
    plans: dict[str, Metadata],
    data_dir: Path,
    tmp_dir: Path,
) -> dict[str, Metadata]:
    """Removes the data of a mixture that is to be replaced; returns the plans that can go on instead.

    They are those of an unfinished generation of the same files, as in `generation`.
    """
    sources = {corpus.name: CorpusSource(make_source(corpus, tmp_dir), corpus) for corpus in mixture.corpora}
    with closed_after_failure(sources.values()):
        if "" not in plans:
            with suppress(T2TError):
                _check_plan(next(iter(plans.values())), spec, mixture, data_dir)
                for name, plan in plans.items():
                    check_origins(data_dir, plan, partial(sources.__getitem__, name))
                return plans
        for source in sources.values():
            counted(source.wrapped)
        with generation_lock(data_dir):
            for plan in plans.values():
                remove_data(data_dir, plan, spec.config.vocab_file)
    return {}


def _lasting_name(data_source: str, source: MixtureSource) -> str:
    """Returns a `--data_source` of the same mixture that does not depend on the current folder."""
    if data_source.endswith(SUFFIXES):
        return str(Path(data_source).expanduser().resolve())
    return ",".join(
        f"{corpus.name}={source.sources[corpus.name].wrapped.name}"
        + ("" if corpus.weight is None else f":{corpus.weight:.15g}")
        for corpus in source.mixture.corpora
    )


def _corpus_spec(spec: DataSpec, corpus: Corpus, source: CorpusSource, vocabularies: list[Path]) -> DataSpec:
    """Returns the data of one corpus, cut by the vocabulary of all."""
    config = spec.config.replace(
        data_source=corpus.source,
        vocab_size=0,
        vocab_file=tuple(vocabularies),
        separate_vocabularies=None,
        update_vocab=False,
    )
    return dataclasses.replace(
        spec,
        name=corpus_name(spec.name, corpus.name),
        config=config,
        make_source=lambda name, tmp_dir: source,
        tags=[corpus.tag] if corpus.tag else (),
    )


def not_mixed(metadata: Metadata, data_dir: Path) -> T2TError:
    """Returns the error of data from one source, where a mixture is asked for."""
    return T2TError(
        f"{data_dir} holds {metadata.name} made from {metadata.source}, which is no mixture: give another "
        "--data_dir"
    )


def _check_plan(plan: Metadata, spec: DataSpec, mixture: Mixture, data_dir: Path) -> None:
    """Checks that data was made as requested, and that its vocabulary has all tags."""
    spec.config.check(data_dir, plan, None)
    vocabulary = open_vocabulary(data_dir / plan.vocab_file)
    known = vocabulary.pieces if isinstance(vocabulary, Vocabulary) else []
    if missing := [tag for tag in mixture.tags if as_piece(symbol(tag)) not in known]:
        if not isinstance(vocabulary, Vocabulary):
            raise no_symbols(vocabulary, missing)
        raise T2TError(
            f"--data_source={spec.config.data_source}: tag {missing[0]!r} is not in {vocabulary.path}: give "
            "another --data_dir, where a new vocabulary has it, or add it there with "
            f"--vocab_file={vocabulary.path} --update_vocab"
        )


def summed(name: str, data_source: str, mixture: Mixture, corpora: dict[str, Metadata]) -> Metadata:
    """Returns the metadata of a mixture, given those of its corpora."""
    first = next(iter(corpora.values()))
    source_langs = dict.fromkeys(each.source_lang for each in corpora.values())
    target_langs = dict.fromkeys(each.target_lang for each in corpora.values())
    splits = [split for split in SPLITS if any(split in each.splits for each in corpora.values())]
    counts = {
        split: [each.splits[split] for each in corpora.values() if split in each.splits] for split in splits
    }
    return dataclasses.replace(
        first,
        name=name,
        source=data_source,
        origins=Origins(),
        pairs={split: sum(each.pairs.get(split, 0) for each in corpora.values()) for split in splits},
        splits={split: sum(found, SplitCounts()) for split, found in counts.items()},
        corpora=mixture.weights({name: each.splits[TRAIN].examples for name, each in corpora.items()}),
        tags=mixture.tags,
        weighted=any(each.weighted for each in corpora.values()),
        aligned=any(each.aligned for each in corpora.values()),
        source_lang=",".join(source_langs),
        target_lang=",".join(target_langs),
    )


class MixtureSource(Source):
    """All corpora of a mixture one after another, by which a problem chooses its vocabulary size.

    `known` has numbers of pairs of corpora, whose sources are not read then.
    """

    def __init__(
        self,
        name: str,
        mixture: Mixture,
        sources: dict[str, CorpusSource],
        known: Mapping[str, dict[str, int]] | None = None,
    ) -> None:
        self.name, self.mixture, self.sources, self._known = name, mixture, sources, known or {}
        languages = {(source.source_lang, source.target_lang) for source in sources.values()}
        if len(languages) == 1:
            self.source_lang, self.target_lang = languages.pop()
        kinds = {source.kind for source in self.sources.values()}
        self.kind = kinds.pop() if len(kinds) == 1 else "folder"

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        """Number of pairs of each corpus and split."""
        return {
            name: self._known.get(name) or {split: source.count(split) for split in counted(source.wrapped)}
            for name, source in self.sources.items()
        }

    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if any(split in counts for counts in self.counts.values()))

    def count(self, split: str) -> int:
        return sum(counts.get(split, 0) for counts in self.counts.values())

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        for source, counts in zip(self.sources.values(), self.counts.values(), strict=True):
            here = counts.get(split, 0)
            if start < here and stop > 0:
                yield from source.pairs(split, max(start, 0), min(stop, here))
            start, stop = start - here, stop - here

    def text(
        self, clean: bool, sides: slice = BOTH_SIDES, characters: int = SAMPLE_CHARACTERS
    ) -> Iterator[str]:
        """Yields lines of train, of both sides or one, as many characters of a corpus as its weight asks for.

        Corpora that are too small for it are repeated. `clean` leaves out pairs that the rules of
        `data.cleaning` drop, but for duplicates.
        """
        kept = keeps if clean else None
        counts = {name: counts[TRAIN] for name, counts in self.counts.items()}
        weights = self.mixture.weights(counts)
        wanted = {name: characters * weight / sum(weights.values()) for name, weight in weights.items()}
        found = {
            name: list(sample_lines(source, counts[name], None, int(wanted[name]), kept, sides))
            for name, source in self.sources.items()
        }
        repeats = {name: wanted[name] / max(sum(map(len, lines)), 1) for name, lines in found.items()}
        least = max(1.0, min(repeats[name] for name, weight in weights.items() if weight))
        for name, lines in found.items():
            for _ in range(round(repeats[name] / least)):
                yield from lines


def _vocabularies(
    spec: DataSpec, source: MixtureSource, data_dir: Path, work_dir: Path, progress: OnProgress
) -> list[Path]:
    """Returns the paths of the vocabulary, or the two, of a new mixture, made if they are missing."""
    spec = dataclasses.replace(spec, tags=source.mixture.tags)
    sides = (INPUTS, TARGETS) if spec.config.separate_vocabularies else (BOTH_SIDES,)

    def made(side: slice) -> TextEncoder:
        lines = source.text(bool(spec.config.clean), side)
        on_training = partial(progress, "vocabulary", 0, source.count(TRAIN))
        return make_vocabulary(spec, data_dir, work_dir, source, lines, on_training, side)

    with generation_lock(data_dir):
        work_dir.mkdir(exist_ok=True)
        try:
            return [each.path.replace(data_dir / each.path.name) for each in [made(side) for side in sides]]
        finally:
            for path in work_dir.iterdir():
                path.unlink()
            work_dir.rmdir()
