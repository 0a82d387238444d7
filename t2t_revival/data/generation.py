"""Data generation: from a source to shards in a data_dir, with many processes, resumable and repairable.

Each shard is a contiguous range of the source's pairs, made by one task. While data is made, the folder
`.PROBLEM.unfinished` holds the plan (the metadata without counts) and the counts of each finished shard. The
metadata is written last, and then that folder is removed.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from t2t_revival.data import cleaning
from t2t_revival.data.alignment_step import has_own_alignments, write_alignments
from t2t_revival.data.config import DataSpec
from t2t_revival.data.generation_folder import created, generation_lock, other_data, read_plan, remove_data
from t2t_revival.data.metadata import (
    Metadata,
    SplitCounts,
    cleaned_path,
    metadata_path,
    references_path,
    unfinished_dir,
)
from t2t_revival.data.origin_check import REMEDY, check_origins
from t2t_revival.data.records import fault, remove_temporary
from t2t_revival.data.source_checks import counted
from t2t_revival.data.sources import Source
from t2t_revival.data.statistical_alignment import check_installed
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
from t2t_revival.data.vocabulary.text_encoder import fingerprint
from t2t_revival.data.vocabulary_step import BOTH_SIDES, INPUTS, TARGETS, make_vocabulary, sample_lines
from t2t_revival.data.workers import Folders, ShardRunner, ShardTask, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import atomic_write, check_file_name, is_file_name
from t2t_revival.utils.origins import Origins

OnProgress = Callable[[str, int, int], None]
MISSING = "missing"
MANY_PAIRS, MANY_SHARDS, FEW_SHARDS = 1_000_000, 100, 10


def generate(
    spec: DataSpec,
    data_dir: Path,
    tmp_dir: Path | None,
    progress: OnProgress | None,
    shard_runner: ShardRunner = make_shards,
) -> Metadata:
    """Makes the missing parts of a problem's data and returns the metadata, as written.

    Args:
        spec: the data to make.
        data_dir: its folder; created if missing.
        tmp_dir: the folder for unpacked files. `None` uses `data_dir/tmp`.
        progress: called with a stage, the number of pairs done and their total. A stage is "verifying",
            "reading", "cleaning", "vocabulary", "aligning", "pairs", or a line for people: of a corrupt
            shard, a download, or origins that cannot be checked. The pairs of train are also counted after
            "cleaning".
        shard_runner: makes the shards, here or on other machines (see `data.beam`).

    Raises:
        T2TError: the source cannot be read, or a file of it has changed since the data was made; the
            data_dir cannot be written, holds data of another source, vocabulary or problem, or is in use; a
            name is not a valid file name.
    """
    if not is_file_name(spec.name):
        raise T2TError(
            f"problem {spec.name!r}: not a valid file name, and its files begin with it; rename the problem"
        )
    for given in spec.config.vocab_file:
        check_file_name(given)
    tmp_dir = tmp_dir or data_dir / "tmp"
    progress = progress or (lambda stage, done, total: None)
    with created(data_dir, unfinished_dir(data_dir, spec.name)):
        plan = read_plan(spec.name, data_dir)
        if plan and spec.overwrite:
            spec = as_before(spec, plan)
            plan = _cleared(spec, data_dir, plan, tmp_dir)
        source = _open_source(spec, data_dir, plan, tmp_dir)
        if plan and (note := check_origins(data_dir, plan, lambda: source)):
            progress(note, 0, 0)
        generation = _Generation(spec, data_dir, tmp_dir, source, progress, shard_runner)
        return plan if plan and generation.is_complete(plan) else generation.run()


def as_before(spec: DataSpec, plan: Metadata) -> DataSpec:
    """Returns the spec of data that replaces other, made in the same way where it says nothing else."""
    config = spec.config
    separate = config.separate_vocabularies
    return spec.configured(
        data_source=config.data_source or plan.source,
        clean=plan.clean if config.clean is None else config.clean,
        separate_vocabularies=len(plan.vocabularies) > 1 if separate is None else separate,
    )


def _cleared(spec: DataSpec, data_dir: Path, plan: Metadata, tmp_dir: Path) -> Metadata | None:
    """Removes data that is to be replaced; returns the plan of a generation that can go on instead.

    That is an unfinished one that was begun as it is asked for, of files that have not changed: the same
    command resumes also with `overwrite`. Data is kept where the new source cannot be read.
    """
    if not plan.splits:
        with suppress(T2TError):
            source = _open_source(spec, data_dir, plan, tmp_dir)
            check_origins(data_dir, plan, lambda: source)
            return plan
    assert spec.config.data_source
    source = spec.make_source(spec.config.data_source, tmp_dir)
    try:
        counted(source)
    finally:
        source.close()
    with generation_lock(data_dir):
        remove_data(data_dir, plan, spec.config.vocab_file)
    return None


def _open_source(spec: DataSpec, data_dir: Path, plan: Metadata | None, tmp_dir: Path) -> Source:
    """Returns the requested source; without a request, the one that the data_dir was begun with."""
    data_source = spec.config.data_source or (plan.source if plan else _default_source(spec, data_dir))
    source = spec.make_source(data_source, tmp_dir)
    if plan:
        if source.name != plan.source:
            source.check()
        spec.config.check(data_dir, plan, source.name)
    return source


def _default_source(spec: DataSpec, data_dir: Path) -> str:
    """Returns the default source, unless the data_dir holds other problems' data of other sources.

    Raises:
        T2TError: it does, so that a problem or a source seems to be forgotten.
    """
    default = spec.default_source and spec.make_source(spec.default_source, None).name
    if foreign := [other for other in other_data(data_dir, spec.name) if other.source != default]:
        asked = f"--data_source={spec.default_source or 'FOLDER'}"
        raise T2TError(
            f"{data_dir} holds {foreign[0].held}, and no data of {spec.name}: give "
            f"--problem={foreign[0].name}, or {asked} to make data of {spec.name} beside it"
        )
    return spec.default_source


def shard_tasks(plan: Metadata) -> list[ShardTask]:
    """Returns the tasks of all shards of all splits, the train split first."""
    tasks = []
    for split, pairs in plan.pairs.items():
        shards = 1 if split != "train" else MANY_SHARDS if pairs >= MANY_PAIRS else FEW_SHARDS
        for index in range(shards):
            start, stop = index * pairs // shards, (index + 1) * pairs // shards
            tasks.append(ShardTask(plan.name, split, index, shards, start, stop))
    return tasks


def missing_references(spec: DataSpec, plan: Metadata, data_dir: Path) -> list[str]:
    """Returns the splits whose file of references is missing."""
    splits = [split for split in plan.pairs if split != "train"] if spec.references else []
    return [split for split in splits if not references_path(data_dir, plan.name, split).exists()]


@dataclass(frozen=True)
class _Generation:
    """One call of `generate`; the methods below `run` are its steps, in their order."""

    spec: DataSpec
    data_dir: Path
    tmp_dir: Path
    source: Source
    progress: OnProgress
    shard_runner: ShardRunner

    @property
    def folders(self) -> Folders:
        return Folders(self.data_dir, unfinished_dir(self.data_dir, self.spec.name))

    @property
    def rules_file(self) -> Path:
        """The file of `cleaning.apply_rules`, at the same path for workers on other machines."""
        return self.folders.work.absolute() / "train.rules"

    def is_complete(self, plan: Metadata) -> bool:
        """Returns whether all files of a finished generation are there and valid."""
        if missing_references(self.spec, plan, self.data_dir) or not plan.splits:
            return False
        for name, known, _ in plan.vocabularies:
            if not (self.data_dir / name).exists() or fingerprint(self.data_dir / name) != known:
                return False
        self.progress("verifying", 0, 0)
        return not self.faulty_shards(plan)

    def run(self) -> Metadata:
        """Makes the missing files and returns the metadata."""
        with generation_lock(self.data_dir), self.closed_on_early_failure():
            remove_temporary(self.data_dir, self.spec.name)
            self.progress("reading", 0, 0)
            plan = self.add_vocabularies(self.make_plan())
            self.make_missing_shards(plan)
            self.write_missing_references(plan)
            if self.rules_file.exists():
                cleaning.write_sample(self.source, self.rules_file, cleaned_path(self.data_dir, plan.name))
            plan = self.write_metadata(plan)
            self.check_shard_sizes(plan)
            shutil.rmtree(self.folders.work)
            self.close_source()
            return plan

    @contextmanager
    def closed_on_early_failure(self) -> Iterator[None]:
        """Removes what is not data after a failure before the plan is written."""
        try:
            yield
        except BaseException:
            if not read_plan(self.spec.name, self.data_dir):
                self.close_source()
                self.rules_file.unlink(missing_ok=True)
            raise

    def close_source(self) -> None:
        self.source.close()
        with suppress(OSError):  # missing or not empty
            self.tmp_dir.rmdir()

    def make_plan(self) -> Metadata:
        """Returns the plan on the disk, checked against the source, or a new one that is not yet written."""
        plan, source = read_plan(self.spec.name, self.data_dir), self.source
        if not plan and (note := source.download_note()):
            self.progress(note, 0, 0)
        files, vocabularies = Origins.of(source.files()), Origins.of(self.own_vocabularies())
        pairs = counted(source)
        if plan and plan.pairs != pairs:
            raise self.changed_source(f"had {plan.pairs} pairs and now has {pairs}")
        if plan:
            return plan
        if self.spec.config.make_alignments and source.alignments("train", 0, 1) is None:
            check_installed()
        self.rules_file.unlink(missing_ok=True)  # of a generation that was killed, maybe of another source
        langs = source.source_lang, source.target_lang
        return Metadata(
            self.spec.name,
            source.name,
            *langs,
            pairs,
            clean=bool(self.spec.config.clean),
            weighted=source.weights(0, 1) is not None,
            aligned=self.spec.config.make_alignments or has_own_alignments(source),
            origins=dataclasses.replace(files, version=source.version()),
            given_vocabularies=vocabularies,
        )

    def own_vocabularies(self) -> list[Path]:
        """The given vocabularies but those of the data_dir itself, of which the metadata has fingerprints."""
        folder = self.data_dir.resolve()
        return [path for path in self.spec.config.vocab_file if path.resolve().parent != folder]

    def changed_source(self, change: str) -> T2TError:
        return T2TError(
            f"{self.source.name} has changed since the generation in {self.data_dir} began: it {change}; "
            + REMEDY
        )

    def rules(self, plan: Metadata) -> Path | None:
        """Returns the file of rules that drop pairs of train, made if missing; `None` without cleaning."""
        if plan.clean and not self.rules_file.exists():
            self.folders.work.mkdir(exist_ok=True)
            self.progress("cleaning", 0, 0)
            pairs, on_pairs = plan.pairs["train"], partial(self.progress, "pairs")
            on_pairs(0, pairs)
            own = self.source.wrapped or self.source  # without a tag, which makes equal sides differ
            cleaning.apply_rules(own, pairs, self.rules_file, on_pairs)
        return self.rules_file if plan.clean else None

    def alignments(self, plan: Metadata) -> Path | None:
        """Returns the file of word alignments of train, made if missing; `None` without them."""
        file = self.folders.work.absolute() / "train.align"
        if plan.aligned and not file.exists():
            self.folders.work.mkdir(exist_ok=True)
            self.progress("aligning", 0, 0)
            write_alignments(self.source, plan.pairs["train"], file)
        return file if plan.aligned else None

    def add_vocabularies(self, plan: Metadata) -> Metadata:
        """Returns the plan with its vocabulary or two, all written.

        New vocabularies are moved to their own names after the plan is written: a failure before that does
        not bind the data_dir to a source or a vocabulary size.
        """
        known = plan.vocabularies
        if known and all((self.data_dir / vocabulary.name).exists() for vocabulary in known):
            plan.open_vocabularies(self.data_dir)
            return plan
        self.folders.work.mkdir(exist_ok=True)
        separate = len(known) > 1 if known else self.spec.config.separate_vocabularies
        sides = (INPUTS, TARGETS) if separate else (BOTH_SIDES,)
        made = [self.make_vocabulary(plan, side) for side in sides]
        for old, new in zip(known, made, strict=False):
            if old.fingerprint != new.fingerprint:
                raise T2TError(
                    f"{self.data_dir / old.name} was missing, and {self.source.name} yields another "
                    "vocabulary than before; put the old file back or give another --data_dir"
                )
        plan = plan.with_vocabularies(made)
        plan.save(self.folders.work / "plan.json")
        for vocabulary in made:
            vocabulary.path.replace(self.data_dir / vocabulary.path.name)
        return plan

    def make_vocabulary(self, plan: Metadata, sides: slice) -> TextEncoder:
        pairs = plan.pairs["train"]
        lines = sample_lines(self.source, pairs, self.rules(plan), sides=sides)
        on_training = partial(self.progress, "vocabulary", 0, pairs)
        known = plan.target_vocab_size if sides == TARGETS else plan.vocab_size
        return make_vocabulary(
            self.spec, self.data_dir, self.folders.work, self.source, lines, on_training, sides, known
        )

    def make_missing_shards(self, plan: Metadata) -> None:
        faulty, total = self.faulty_shards(plan), sum(plan.pairs.values())
        for task, reason in faulty.items():
            if reason != MISSING:
                self.progress(f"making {task.file_name} again: {reason}", 0, 0)
        valid = total - sum(task.pairs for task in faulty)
        beside: dict[str, Any] = {}
        if any(task.split == "train" for task in faulty):
            beside = {"rules": self.rules(plan), "alignments": self.alignments(plan)}
        tasks = [dataclasses.replace(task, **beside) if task.split == "train" else task for task in faulty]
        self.progress("pairs", valid, total)
        vocabularies = Vocabularies.open([self.data_dir / made.name for made in plan.vocabularies])
        self.folders.work.mkdir(exist_ok=True)

        def on_pairs(done: int) -> None:
            self.progress("pairs", valid + done, total)

        self.shard_runner(tasks, self.source, vocabularies, self.folders, on_pairs)

    def faulty_shards(self, plan: Metadata) -> dict[ShardTask, str]:
        """Returns the shards that are missing, corrupt or without known counts, each with the reason."""
        reasons = {task: self.shard_fault(plan, task) for task in shard_tasks(plan)}
        return {task: reason for task, reason in reasons.items() if reason}

    def shard_fault(self, plan: Metadata, task: ShardTask) -> str | None:
        if not self.folders.shard(task).exists():
            return MISSING
        if plan.splits:
            size = plan.splits[task.split].shard_bytes[task.index]
        else:
            try:
                size = self.shard_counts(task).shard_bytes[0]
            except (OSError, T2TError):  # not made, or its counts are corrupt
                return MISSING
        return fault(self.folders.shard(task), size)

    def shard_counts(self, task: ShardTask) -> SplitCounts:
        """Reads the counts of a shard of an unfinished generation."""
        counts = checked_json.load(self.folders.counts(task), "remove it and start again")
        return SplitCounts.from_dict(counts)

    def write_missing_references(self, plan: Metadata) -> None:
        for split in missing_references(self.spec, plan, self.data_dir):
            assert self.spec.references is not None
            lines = list(self.spec.references(self.source, split))
            if len(lines) != plan.pairs[split]:
                had = f"had {plan.pairs[split]} trees in its {split} split"
                raise self.changed_source(f"{had} and now has {len(lines)}")
            with atomic_write(references_path(self.data_dir, plan.name, split)) as file:
                file.writelines(f"{line}\n".encode() for line in lines)

    def write_metadata(self, plan: Metadata) -> Metadata:
        """Adds the counts of all shards to a plan without counts, and writes it as the metadata."""
        if plan.splits:
            return plan
        splits = dict.fromkeys(plan.pairs, SplitCounts())
        for task in shard_tasks(plan):
            splits[task.split] += self.shard_counts(task)
        if empty := [split for split, counts in splits.items() if not counts.examples]:
            raise T2TError(f"{self.source.name}: every pair of {empty[0]} has an empty side; add whole pairs")
        if change := plan.origins.change(self.source.files()):
            raise self.changed_source(f"was read while it was written: {change}")
        plan = dataclasses.replace(plan, splits=splits)
        plan.save(metadata_path(self.data_dir, plan.name))
        return plan

    def check_shard_sizes(self, plan: Metadata) -> None:
        """Checks that shards that were made again are what they were before."""
        for task in shard_tasks(plan):
            path = self.folders.shard(task)
            if path.stat().st_size != plan.splits[task.split].shard_bytes[task.index]:
                raise T2TError(
                    f"{path}: made again, it differs from before, so {self.source.name} has changed; "
                    + REMEDY
                )
