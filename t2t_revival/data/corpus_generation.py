"""The generation of one corpus: from its source to its shards, with many processes, resumable and repairable.

Each shard is a contiguous range of the source's pairs, made by one task. While data is made, the folder
`.PROBLEM.unfinished` holds, beside new vocabularies, of each corpus (of several its name begins these names)

plan.json              the metadata without counts
train.rules            by which pairs of train are dropped, see `data.cleaning`
train.align            the word alignments of train, a line for each pair
PROBLEM-SPLIT-*.json   the counts of each finished shard

Each file gets its name when it is complete, the metadata last, and then that folder is removed.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

from t2t_revival.data import cleaning
from t2t_revival.data.base_source import DEV, SPLITS, TEST, TRAIN
from t2t_revival.data.config import (
    REMEDY,
    DataSpec,
    Metadata,
    SplitCounts,
    cleaned_path,
    metadata_path,
    references_path,
    unfinished_dir,
)
from t2t_revival.data.mixture import Corpus, CorpusRows
from t2t_revival.data.records import MISSING, fault
from t2t_revival.data.statistical_alignment import align_corpus
from t2t_revival.data.vocabulary import TextEncoder
from t2t_revival.data.word_alignment import checked_lines
from t2t_revival.data.workers import Folders, ShardMaker, ShardRunner, ShardTask
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.extras import require
from t2t_revival.utils.files import atomic_write
from t2t_revival.utils.origins import Origins
from t2t_revival.utils.unicode_forms import mixed_note, normalized

OnProgress = Callable[[str, int, int], None]
PLAN = "plan.json"
MANY_PAIRS, MANY_SHARDS, FEW_SHARDS = 1_000_000, 100, 10


def work_file(data_dir: Path, problem: str, corpus: str, name: str) -> Path:
    """Returns the path of a corpus's file in the folder of the unfinished generation."""
    return unfinished_dir(data_dir, problem) / (f"{corpus}.{name}" if corpus else name)


def read_plan(data_dir: Path, problem: str, corpus: str = "") -> Metadata | None:
    """Reads the metadata of a corpus in a data_dir, or else the plan of its unfinished generation."""
    name = Corpus(corpus, "").files_name(problem)
    for path in (metadata_path(data_dir, name), work_file(data_dir, problem, corpus, PLAN)):
        if path.is_file():
            return Metadata.load(path)
    patterns = (f"{name}-{split}-?????-of-?????" for split in SPLITS)
    if stray := next(chain.from_iterable(map(data_dir.glob, patterns)), None):
        raise T2TError(
            f"{data_dir} holds {stray.name} without {name}.meta.json: another program has made it; "
            "give another --data_dir"
        )
    return None


def other_data(data_dir: Path, name: str) -> list[Metadata]:
    """Returns the metadata of the other problems in a data_dir; of a mixture, not of each corpus."""
    paths = sorted(data_dir.glob("*.meta.json"))
    found = [Metadata.load(path) for path in paths if path != metadata_path(data_dir, name)]
    return [other for other in found if "." not in other.name]


def remove_data(data_dir: Path, problem: str, kept: Iterable[Path]) -> None:
    """Removes a problem's data, of all corpora, finished or not.

    Vocabularies stay that are among `kept`, or that the data of another problem there has too.
    """
    work = unfinished_dir(data_dir, problem)
    plans = [Metadata.load(path) for path in (*data_dir.glob("*.meta.json"), *work.glob(f"*{PLAN}"))]
    own = [plan for plan in plans if f"{plan.name}.".startswith(f"{problem}.")]
    shared = {made.name for plan in plans if plan not in own for made in plan.vocabularies}
    shared |= {path.name for path in kept if path.resolve().parent == data_dir.resolve()}
    for plan in own:
        for split in plan.pairs:
            for shard in data_dir.glob(f"{plan.name}-{split}-?????-of-?????"):
                shard.unlink()
            references_path(data_dir, plan.name, split).unlink(missing_ok=True)
        for name in {made.name for made in plan.vocabularies} - shared:
            (data_dir / name).unlink(missing_ok=True)
        cleaned_path(data_dir, plan.name).unlink(missing_ok=True)
        metadata_path(data_dir, plan.name).unlink(missing_ok=True)
    shutil.rmtree(work, ignore_errors=True)


def shard_tasks(plan: Metadata) -> list[ShardTask]:
    """Returns the tasks of all shards of all splits, the train split first."""
    tasks = []
    for split, pairs in plan.pairs.items():
        shards = 1 if split != TRAIN else MANY_SHARDS if pairs >= MANY_PAIRS else FEW_SHARDS
        for index in range(shards):
            start, stop = index * pairs // shards, (index + 1) * pairs // shards
            tasks.append(ShardTask(plan.name, split, index, shards, start, stop))
    return tasks


class CorpusGeneration:
    """The data of one corpus, as far as it is made.

    Attributes:
        corpus: its name, tag and so on.
        source: its own source.
        source_name: the name of the source with the changes that the corpus makes.
        languages: of inputs and targets.
        plan_file: of the plan, which is removed when the data of all corpora is complete.
    """

    def __init__(
        self,
        spec: DataSpec,
        corpus: Corpus,
        plan: Metadata | None,
        data_dir: Path,
        tmp_dir: Path,
        progress: OnProgress,
    ) -> None:
        self._spec, self.corpus, self._plan = spec, corpus, plan
        self._data_dir, self._progress = data_dir, progress
        self.source = spec.make_source(corpus, tmp_dir)
        if corpus.name:
            self.source.optional = (DEV, TEST)
        self.source_name = corpus.source_name(self.source.name)
        languages = self.source.source_lang, self.source.target_lang
        self.languages = languages[::-1] if corpus.swapped else languages
        self._name = corpus.files_name(spec.name)
        self._folders = Folders(data_dir, unfinished_dir(data_dir, spec.name))
        file = partial(work_file, data_dir.absolute(), spec.name, corpus.name)  # the same on other machines
        self.plan_file = file(PLAN)
        self._rules_file, self._alignments_file = file("train.rules"), file("train.align")

    @property
    def plan(self) -> Metadata:
        """The plan, or the metadata once all is made; after `read_source` there is one."""
        assert self._plan
        return self._plan

    def start_again(self) -> None:
        """Forgets the plan, whose data was removed."""
        self._plan = None

    def check(self) -> None:
        """Checks that what there is was made as requested, and that what it was made of has not changed.

        Raises:
            T2TError: it was made otherwise, or that has changed.
        """
        if not self._plan:
            return
        if self.source_name != self._plan.source:
            self.source.check()
        self._spec.config.check(self._data_dir, self._plan, self.source_name)
        if note := self._plan.check_origins(self._data_dir, lambda: self.source):
            self._progress(note, 0, 0)

    def is_complete(self) -> bool:
        """Returns whether all files of a finished generation are there, and its shards valid."""
        if not (self._plan and self._plan.splits) or self._missing_references():
            return False
        self._progress("verifying", 0, 0)
        return not self._tasks

    @cached_property
    def _tasks(self) -> dict[ShardTask, str]:
        """The shards to make, each with the reason; those of finished data are read."""
        tasks, splits = shard_tasks(self.plan), self.plan.splits
        if not splits:
            files = {task: (self._folders.shard(task), self._folders.counts(task)) for task in tasks}
            return {task: MISSING for task, both in files.items() if not all(map(Path.exists, both))}
        sizes = {task: splits[task.split].shard_bytes[task.index] for task in tasks}
        faults = {task: fault(self._folders.shard(task), size) for task, size in sizes.items()}
        return {task: reason for task, reason in faults.items() if reason}

    def read_source(self) -> None:
        """Counts the source's pairs and makes a plan, which is not yet written.

        Raises:
            T2TError: the source cannot be read, or has other pairs than the plan on the disk.
        """
        source, config = self.source, self._spec.config
        if not self._plan and (note := source.download_note()):
            self._progress(note, 0, 0)
        folder = self._data_dir.resolve()  # of whose vocabularies the metadata has fingerprints
        foreign = [path for path in config.vocab_file if path.resolve().parent != folder]
        files, vocabularies = Origins.of(source.files()), Origins.of(foreign)
        pairs = source.counts()
        if self.corpus.limit:
            pairs[TRAIN] = min(pairs[TRAIN], self.corpus.limit)
        if self._plan and self._plan.pairs != pairs:
            raise self._changed_source(f"had {self._plan.pairs} pairs and now has {pairs}")
        if self._plan:
            return
        aligned = config.make_alignments or source.kind == "folder"
        if aligned and source.alignments(TRAIN, 0, 1) is None:
            aligned = config.make_alignments
            if aligned:
                require("eflomal", "--make_alignments")
        self._plan = Metadata(
            self._name,
            self.source_name,
            *self.languages,
            pairs,
            clean=bool(config.clean),
            weighted=source.has_weights(),
            aligned=aligned,
            normalize=config.normalize,
            origins=dataclasses.replace(files, version=source.version()),
            given_vocabularies=vocabularies,
        )

    def _changed_source(self, change: str) -> T2TError:
        return T2TError(
            f"{self.source_name} has changed since the generation in {self._data_dir} began: it {change}; "
            + REMEDY
        )

    def rows(self) -> CorpusRows:
        """Returns the rows of the corpus, before cleaning and without alignments."""
        corpus = self.corpus
        return CorpusRows(self.source, swapped=corpus.swapped, tag=corpus.tag, form=self.plan.normalize)

    def kept_rows(self) -> CorpusRows:
        """Returns the rows that are left after `apply_rules`, with alignments once they are written."""
        alignments = self._alignments_file if self._alignments_file.exists() else None
        rules = self._rules_file if self.plan.clean else None
        return dataclasses.replace(self.rows(), alignments=alignments, rules=rules)

    def begin(self, vocabularies: Sequence[TextEncoder]) -> None:
        """Writes the plan, with the vocabularies, unless it is written."""
        if not self.plan.vocabularies:
            self._plan = self.plan.with_vocabularies(vocabularies)
            self._plan.save(self.plan_file)

    def apply_rules(self) -> None:
        """Finds the pairs of train that cleaning drops, if it is asked for and not done.

        Tags are left out, which would make equal sides differ.
        """
        if self.plan.clean and not self._rules_file.exists():
            self._progress("cleaning", 0, 0)
            pairs, on_pairs = self.plan.pairs[TRAIN], partial(self._progress, "pairs")
            on_pairs(0, pairs)
            cleaning.apply_rules(self.source, pairs, self._rules_file, on_pairs)

    def _write_alignments(self) -> None:
        """Writes the alignments of the source, or else eflomal's, if they are asked for and not written."""
        if self.plan.aligned and not self._alignments_file.exists():
            self._progress("aligning", 0, 0)
            pairs = self.plan.pairs[TRAIN]
            lines = self.source.alignments(TRAIN, 0, pairs)
            if lines is None:
                sides = (row[:2] for row in self.source.rows(TRAIN, 0, pairs))
                lines = align_corpus(sides, self._folders.work)
            sides = (row[:2] for row in self.source.rows(TRAIN, 0, pairs))
            checked = checked_lines(lines, sides, f"{self.source_name}: alignments of train")
            with atomic_write(self._alignments_file) as file:
                file.writelines(f"{line}\n".encode() for line in checked)

    def make(self, vocabularies: Sequence[Path], shard_runner: ShardRunner) -> None:
        """Makes the files that are missing or faulty."""
        tasks, total = list(self._tasks), sum(self.plan.pairs.values())
        for task, reason in self._tasks.items():
            if reason != MISSING:
                self._progress(f"making {task.file_name} again: {reason}", 0, 0)
        if any(task.split == TRAIN for task in tasks):
            self.apply_rules()
            self._write_alignments()
        valid = total - sum(task.pairs for task in tasks)
        self._progress("pairs", valid, total)

        def on_pairs(done: int) -> None:
            self._progress("pairs", valid + done, total)

        shard_runner(tasks, ShardMaker(self.kept_rows(), vocabularies), self._folders, on_pairs)
        for split in self._missing_references():
            self._write_references(split)
        if not self.plan.splits:
            self._write_metadata()
        for task in tasks:
            path = self._folders.shard(task)
            if path.stat().st_size != self.plan.splits[task.split].shard_bytes[task.index]:
                raise T2TError(
                    f"{path}: made again, it differs from before, so {self.source_name} has changed; {REMEDY}"
                )

    def _missing_references(self) -> list[str]:
        """Returns the splits whose file of references is missing."""
        splits = [split for split in self.plan.pairs if split != TRAIN] if self._spec.references else []
        return [split for split in splits if not references_path(self._data_dir, self._name, split).exists()]

    def _write_references(self, split: str) -> None:
        assert self._spec.references is not None
        lines = list(self._spec.references(self.source, split))
        if len(lines) != self.plan.pairs[split]:
            had = f"had {self.plan.pairs[split]} trees in its {split} split"
            raise self._changed_source(f"{had} and now has {len(lines)}")
        with atomic_write(references_path(self._data_dir, self._name, split)) as file:
            file.writelines(f"{normalized(line, self.plan.normalize)}\n".encode() for line in lines)

    def _write_metadata(self) -> None:
        """Adds the counts of all shards to the plan, and writes it as the metadata."""
        plan = self.plan
        splits = dict.fromkeys(plan.pairs, SplitCounts())
        for task in shard_tasks(plan):
            counts = checked_json.load(self._folders.counts(task), "remove it and start again")
            splits[task.split] += SplitCounts.from_dict(counts)
        if plan.clean:
            sample = cleaned_path(self._data_dir, self._name)
            cleaning.write_sample(self.rows().rows, self._rules_file, sample)
            cleaned = cleaning.count_dropped(self._rules_file.read_bytes())
            skipped = plan.pairs[TRAIN] - splits[TRAIN].examples - sum(cleaned.values())
            splits[TRAIN] = dataclasses.replace(splits[TRAIN], skipped=skipped, cleaned=cleaned)
        if empty := [split for split, counts in splits.items() if not counts.examples]:
            raise T2TError(f"{self.source_name}: every pair of {empty[0]} has an empty side; add whole pairs")
        if change := plan.origins.change(self.source.files()):
            raise self._changed_source(f"was read while it was written: {change}")
        train = splits[TRAIN]
        for language, forms in zip(self.languages, (train.source_forms, train.target_forms), strict=True):
            if note := mixed_note(forms):
                self._progress(f"{self.source_name}, {language}: {note}", 0, 0)
        self._plan = dataclasses.replace(plan, splits=splits)
        self._plan.save(metadata_path(self._data_dir, self._name))
