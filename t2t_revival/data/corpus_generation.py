"""The generation of one corpus: from its source to its shards, with many processes, resumable and repairable.

Each shard is a contiguous range of the source's pairs, made by one task. While data is made, the folder
`.PROBLEM.unfinished` holds

plan.json              the metadata without counts
train.rules            by which pairs of train are dropped, see `data.cleaning`
train.align            the word alignments of train, a line for each pair
PROBLEM-SPLIT-*.json   the counts of each finished shard

The metadata is written last, and then that folder is removed.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
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
from t2t_revival.data.records import fault
from t2t_revival.data.statistical_alignment import align_corpus
from t2t_revival.data.vocabulary import TextEncoder
from t2t_revival.data.vocabulary.text_encoder import fingerprint
from t2t_revival.data.word_alignment import checked_lines
from t2t_revival.data.workers import Folders, ShardMaker, ShardRunner, ShardTask
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.extras import require
from t2t_revival.utils.files import atomic_write, exclusive_lock, make_folder
from t2t_revival.utils.origins import Origins
from t2t_revival.utils.unicode_forms import mixed_note, normalized

OnProgress = Callable[[str, int, int], None]
MISSING = "missing"
MANY_PAIRS, MANY_SHARDS, FEW_SHARDS = 1_000_000, 100, 10


@contextmanager
def created(data_dir: Path, work_dir: Path) -> Iterator[None]:
    """Creates `data_dir`; after a failure, removes it, its new parents and `work_dir` if empty.

    Nothing is removed while another process generates data there.
    """
    created = [folder for folder in (data_dir, *data_dir.parents) if not folder.exists()]
    try:
        make_folder(data_dir)
    except OSError as error:
        raise T2TError(f"--data_dir={data_dir}: cannot be created ({error.strerror})") from error
    try:
        yield
    except BaseException:
        with suppress(OSError, T2TError), exclusive_lock(data_dir, "in use"):
            for folder in (work_dir, *created):
                with suppress(OSError):  # missing or not empty
                    folder.rmdir()
        raise


@contextmanager
def generation_lock(data_dir: Path, progress: OnProgress) -> Iterator[None]:
    """Locks a data_dir against other processes that generate data; waits for one, and says so.

    A worker that begins does not wait: it runs the script again whose process holds the lock.

    Raises:
        T2TError: the folder cannot be written; or this is such a worker, and another process holds the lock.
    """
    if not os.access(data_dir, os.W_OK | os.X_OK):
        raise T2TError(f"--data_dir={data_dir}: not writable; give another --data_dir")
    busy = f"{data_dir}: another process is generating data there"
    begins = getattr(multiprocessing.current_process(), "_inheriting", False)  # as multiprocessing asks
    refusal = f"{busy}; wait for it" if begins else None
    with exclusive_lock(data_dir, refusal, lambda: progress(f"{busy}; waiting for it", 0, 0)):
        yield


def read_plan(name: str, data_dir: Path) -> Metadata | None:
    """Reads the metadata of a problem in a data_dir, or else the plan of its unfinished generation."""
    for path in (metadata_path(data_dir, name), unfinished_dir(data_dir, name) / "plan.json"):
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


def remove_data(data_dir: Path, plan: Metadata, kept: Sequence[Path] = ()) -> None:
    """Removes a problem's data, of all corpora, finished or not; the metadata last, which names the rest.

    Vocabularies stay that are among `kept`, or that the data of another problem there has too.
    """
    for corpus in plan.corpora:
        if part := read_plan(f"{plan.name}.{corpus}", data_dir):
            remove_data(data_dir, part, kept)
    paths = [path for split in plan.pairs for path in data_dir.glob(f"{plan.name}-{split}-?????-of-?????")]
    paths += [references_path(data_dir, plan.name, split) for split in plan.pairs]
    own = metadata_path(data_dir, plan.name)
    others = [Metadata.load(path) for path in data_dir.glob("*.meta.json") if path != own]
    shared = {made.name for other in others for made in other.vocabularies}
    shared |= {path.name for path in kept if path.resolve().parent == data_dir.resolve()}
    paths += [data_dir / made.name for made in plan.vocabularies if made.name not in shared]
    for path in [*paths, cleaned_path(data_dir, plan.name)]:
        path.unlink(missing_ok=True)
    shutil.rmtree(unfinished_dir(data_dir, plan.name), ignore_errors=True)
    own.unlink(missing_ok=True)


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
        self._spec, self.corpus, self._data_dir, self._tmp_dir = spec, corpus, data_dir, tmp_dir
        self._progress = progress
        self.source = spec.make_source(corpus, tmp_dir)
        if corpus.name:
            self.source.optional = (DEV, TEST)
        self.source_name = corpus.source_name(self.source.name)
        languages = self.source.source_lang, self.source.target_lang
        self.languages = languages[::-1] if corpus.swapped else languages
        self._name = corpus.files_name(spec.name)
        self._folders = Folders(data_dir, unfinished_dir(data_dir, self._name))
        work = self._folders.work.absolute()  # the same for workers on other machines
        self._rules_file, self._alignments_file = work / "train.rules", work / "train.align"
        self._plan = plan

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
        """Returns whether all files of a finished generation are there and valid."""
        if not (self._plan and self._plan.splits) or self.missing_references():
            return False
        for name, known, _ in self._plan.vocabularies:
            if not (self._data_dir / name).exists() or fingerprint(self._data_dir / name) != known:
                return False
        self._progress("verifying", 0, 0)
        return not self.faulty_shards()

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
        self._rules_file.unlink(missing_ok=True)  # of a generation that was killed, maybe of another source
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
            self._folders.work.mkdir(exist_ok=True)
            self._plan.save(self._folders.work / "plan.json")

    def make(self, vocabularies: Sequence[Path], shard_runner: ShardRunner) -> None:
        """Makes the missing files."""
        self.make_missing_shards(vocabularies, shard_runner)
        self.write_missing_references()
        self.write_metadata()
        for task in shard_tasks(self.plan):
            path = self._folders.shard(task)
            if path.stat().st_size != self.plan.splits[task.split].shard_bytes[task.index]:
                raise T2TError(
                    f"{path}: made again, it differs from before, so {self.source_name} has changed; {REMEDY}"
                )
        shutil.rmtree(self._folders.work)
        self.close()

    def clean_unless_begun(self) -> None:
        """Removes what is not data after a failure before the plan is written."""
        if not read_plan(self._name, self._data_dir):
            self.close()
            shutil.rmtree(self._folders.work, ignore_errors=True)

    def close(self) -> None:
        """Removes temporary files of the source."""
        self.source.close()
        with suppress(OSError):  # missing or not empty
            self._tmp_dir.rmdir()

    def apply_rules(self) -> None:
        """Finds the pairs of train that cleaning drops, if it is asked for and not done.

        Tags are left out, which would make equal sides differ.
        """
        if self.plan.clean and not self._rules_file.exists():
            self._folders.work.mkdir(exist_ok=True)
            self._progress("cleaning", 0, 0)
            pairs, on_pairs = self.plan.pairs[TRAIN], partial(self._progress, "pairs")
            on_pairs(0, pairs)
            cleaning.apply_rules(self.source, pairs, self._rules_file, on_pairs)

    def write_alignments(self) -> None:
        """Writes the alignments of the source, or else eflomal's, if they are asked for and not written."""
        if self.plan.aligned and not self._alignments_file.exists():
            self._folders.work.mkdir(exist_ok=True)
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

    def make_missing_shards(self, vocabularies: Sequence[Path], shard_runner: ShardRunner) -> None:
        """Makes the shards that are missing or faulty."""
        faulty, total = self.faulty_shards(), sum(self.plan.pairs.values())
        for task, reason in faulty.items():
            if reason != MISSING:
                self._progress(f"making {task.file_name} again: {reason}", 0, 0)
        if any(task.split == TRAIN for task in faulty):
            self.apply_rules()
            self.write_alignments()
        valid = total - sum(task.pairs for task in faulty)
        self._progress("pairs", valid, total)
        self._folders.work.mkdir(exist_ok=True)

        def on_pairs(done: int) -> None:
            self._progress("pairs", valid + done, total)

        shard_runner(list(faulty), ShardMaker(self.kept_rows(), vocabularies), self._folders, on_pairs)

    def faulty_shards(self) -> dict[ShardTask, str]:
        """Returns the shards that are missing, corrupt or without known counts, each with the reason."""
        reasons = {task: self.shard_fault(task) for task in shard_tasks(self.plan)}
        return {task: reason for task, reason in reasons.items() if reason}

    def shard_fault(self, task: ShardTask) -> str | None:
        """Describes why a shard must be made; `None` if it is valid."""
        if not self._folders.shard(task).exists():
            return MISSING
        if self.plan.splits:
            size = self.plan.splits[task.split].shard_bytes[task.index]
        else:
            try:
                size = self.shard_counts(task).shard_bytes[0]
            except (OSError, T2TError):  # not made, or its counts are corrupt
                return MISSING
        return fault(self._folders.shard(task), size)

    def shard_counts(self, task: ShardTask) -> SplitCounts:
        """Reads the counts of a shard of an unfinished generation."""
        counts = checked_json.load(self._folders.counts(task), "remove it and start again")
        return SplitCounts.from_dict(counts)

    def missing_references(self) -> list[str]:
        """Returns the splits whose file of references is missing."""
        splits = [split for split in self.plan.pairs if split != TRAIN] if self._spec.references else []
        return [split for split in splits if not references_path(self._data_dir, self._name, split).exists()]

    def write_missing_references(self) -> None:
        """Writes the files of references that are missing."""
        for split in self.missing_references():
            assert self._spec.references is not None
            lines = list(self._spec.references(self.source, split))
            if len(lines) != self.plan.pairs[split]:
                had = f"had {self.plan.pairs[split]} trees in its {split} split"
                raise self._changed_source(f"{had} and now has {len(lines)}")
            with atomic_write(references_path(self._data_dir, self._name, split)) as file:
                file.writelines(f"{normalized(line, self.plan.normalize)}\n".encode() for line in lines)

    def write_metadata(self) -> None:
        """Adds the counts of all shards to a plan without counts, and writes it as the metadata."""
        plan = self.plan
        if self._rules_file.exists():
            cleaning.write_sample(
                self.rows().rows, self._rules_file, cleaned_path(self._data_dir, self._name)
            )
        if plan.splits:
            return
        splits = dict.fromkeys(plan.pairs, SplitCounts())
        for task in shard_tasks(plan):
            splits[task.split] += self.shard_counts(task)
        if plan.clean:
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
