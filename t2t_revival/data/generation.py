"""From a source to shards in a data_dir: many processes, restartable, nothing half-written.

Each shard is a contiguous range of the source's pairs, made by one task. A plan in
`.PROBLEM.unfinished/` says what is being made; beside it lie the counts of each shard that is done. The
metadata is written last, and then that folder goes.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.data.metadata import Counts, Metadata, check_same, metadata_path
from t2t_revival.data.records import remove_temporary
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabularies import TextEncoder, open_vocabulary
from t2t_revival.data.vocabulary import Vocabulary, VocabularyTooLargeError
from t2t_revival.data.workers import Folders, Task, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.files import writing

Progress = Callable[[str, int, int], None]
VOCABULARY_CHARACTERS = 20_000_000  # of both sides together, from which a vocabulary is learned
VOCABULARY_PLACES = 100  # evenly spread over the corpus, from which those are taken
MANY_PAIRS, MANY_SHARDS, FEW_SHARDS = 1_000_000, 100, 10


@dataclass(frozen=True)
class Recipe:
    """What a problem asks for.

    Attributes:
        name: what the files' names start with.
        data_source: the `--data_source`; None: what the data_dir was begun with, or `default_source`.
        default_source: the `--data_source` of an empty data_dir.
        make_source: the source that a `--data_source` and a folder for temporary files give.
        vocab_size: pieces; 0: what `default_vocab_size` says, or as many as the text allows.
        default_vocab_size: pieces for a source.
        user_symbols: texts that always are one piece of the vocabulary, for a source.
        vocab_file: the vocabulary; None: one is learned.
    """

    name: str
    data_source: str | None
    default_source: str
    make_source: Callable[[str, Path | None], Source]
    vocab_size: int
    default_vocab_size: Callable[[Source], int]
    user_symbols: Callable[[Source], Sequence[str]]
    vocab_file: Path | None = None


def generate(recipe: Recipe, data_dir: Path, tmp_dir: Path | None, progress: Progress | None) -> Metadata:
    """Makes what is missing of a problem's data.

    Args:
        recipe: what to make.
        data_dir: where it goes; made if missing.
        tmp_dir: where compressed files are unpacked; None: `data_dir/tmp`.
        progress: called with a stage ("reading", "vocabulary", "pairs"), pairs done and pairs in all.

    Returns:
        The metadata, as it is on the disk.

    Raises:
        T2TError: the source cannot be read; the data_dir cannot be written, holds data of another source
            or vocabulary, or another process is at work there.
    """
    report = progress or (lambda stage, done, total: None)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise T2TError(f"--data_dir={data_dir}: cannot be made ({error.strerror})") from error
    tmp_dir = tmp_dir or data_dir / "tmp"
    plan = _found(recipe, data_dir)
    source = _source(recipe, data_dir, plan, tmp_dir)
    if plan and _complete(plan, data_dir):
        return plan
    with _only_one(data_dir):
        plan = _found(recipe, data_dir)
        remove_temporary(data_dir, recipe.name)
        report("reading", 0, 0)
        plan = _planned(recipe, data_dir, source, plan)
        plan = _with_vocabulary(recipe, data_dir, source, plan, report)
        _make_missing(plan, data_dir, source, report)
        return _finished(plan, data_dir, source, tmp_dir)


def unfinished_dir(data_dir: Path, name: str) -> Path:
    """Where the plan of a run lies that has not finished, and the counts of the shards it has made."""
    return data_dir / f".{name}.unfinished"


def _source(recipe: Recipe, data_dir: Path, plan: Metadata | None, tmp_dir: Path) -> Source:
    """The source that was asked for, or else the one that data_dir was begun with."""
    asked = recipe.data_source or (plan.source if plan else recipe.default_source)
    source = recipe.make_source(asked, tmp_dir)
    if plan:
        check_same(data_dir, plan, source.name, recipe.vocab_size, recipe.vocab_file)
    return source


def _complete(plan: Metadata, data_dir: Path) -> bool:
    return bool(plan.splits) and (data_dir / plan.vocab_file).exists() and not _missing(plan, data_dir)


@contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """Keeps a second process from writing to the same data_dir at the same time."""
    if not os.access(data_dir, os.W_OK | os.X_OK):
        raise T2TError(f"--data_dir={data_dir}: cannot be written; give one that can")
    folder = os.open(data_dir, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise T2TError(f"{data_dir}: another process is generating data there; wait for it") from error
        yield
    finally:
        os.close(folder)


def _found(recipe: Recipe, data_dir: Path) -> Metadata | None:
    """The metadata or the plan in a data_dir, if there is one."""
    plan_path = unfinished_dir(data_dir, recipe.name) / "plan.json"
    for path in (metadata_path(data_dir, recipe.name), plan_path):
        if path.is_file():
            return Metadata.load(path)
    if stray := next(data_dir.glob(f"{recipe.name}-*-?????-of-?????"), None):
        raise T2TError(
            f"{data_dir} holds {stray.name} without {recipe.name}.meta.json, made by another program; "
            "give another --data_dir"
        )
    return None


def _planned(recipe: Recipe, data_dir: Path, source: Source, plan: Metadata | None) -> Metadata:
    """The plan that was found, or a new one, not yet on the disk."""
    pairs = {split: source.count(split) for split in source.splits()}
    if plan and plan.pairs != pairs:
        raise T2TError(
            f"{source.name} has changed since {data_dir} was begun: it had {plan.pairs} pairs and "
            f"has {pairs}; give another --data_dir"
        )
    return plan or Metadata(recipe.name, source.name, source.source_lang, source.target_lang, pairs)


def _with_vocabulary(
    recipe: Recipe, data_dir: Path, source: Source, plan: Metadata, report: Progress
) -> Metadata:
    """The plan with its vocabulary, both on the disk.

    A new vocabulary gets its own name when the plan that goes with it has been written: until then
    nothing binds the data_dir to a source or a size.
    """
    path = data_dir / plan.vocab_file
    if plan.vocab_file and path.exists():
        if open_vocabulary(path).fingerprint != plan.vocab_fingerprint:
            raise T2TError(
                f"{path}: not the vocabulary that {data_dir} was begun with; put the right file back "
                "or use another --data_dir"
            )
        return plan
    notes = unfinished_dir(data_dir, recipe.name)
    notes.mkdir(exist_ok=True)
    vocabulary = _new_vocabulary(recipe, data_dir, source, plan, report)
    if plan.vocab_fingerprint not in ("", vocabulary.fingerprint):
        raise T2TError(
            f"{path} was missing, and {source.name} yields another vocabulary than before; "
            "put the old file back or use another --data_dir"
        )
    plan = dataclasses.replace(
        plan,
        vocab_file=vocabulary.path.name,
        vocab_fingerprint=vocabulary.fingerprint,
        vocab_size=vocabulary.size,
    )
    plan.save(notes / "plan.json")
    vocabulary.path.replace(data_dir / plan.vocab_file)
    return plan


def _new_vocabulary(
    recipe: Recipe, data_dir: Path, source: Source, plan: Metadata, report: Progress
) -> TextEncoder:
    """A new one beside the plan, or the one of that name that someone has put into data_dir (as in T2T)."""
    notes = unfinished_dir(data_dir, recipe.name)
    if recipe.vocab_file:
        copy = notes / recipe.vocab_file.name
        with writing(copy) as file:
            file.write(open_vocabulary(recipe.vocab_file).content)
        return open_vocabulary(copy)
    size = recipe.vocab_size or plan.vocab_size or recipe.default_vocab_size(source)
    file_name = f"vocab.{recipe.name}.{{}}.spm"
    if (data_dir / file_name.format(size)).exists():
        return open_vocabulary(data_dir / file_name.format(size))
    report("vocabulary", 0, plan.pairs["train"])
    symbols = recipe.user_symbols(source)
    lines = list(sample_lines(source, plan.pairs["train"]))
    try:
        return Vocabulary.train(lines, notes / file_name.format(size), size, symbols)
    except VocabularyTooLargeError as error:
        if recipe.vocab_size:
            raise
        size = error.largest
        return Vocabulary.train(lines, notes / file_name.format(size), size, symbols)


def sample_lines(source: Source, pairs: int, characters: int = VOCABULARY_CHARACTERS) -> Iterator[str]:
    """Lines of both sides of train, from places evenly spread, no more than so many characters in all."""
    places = min(VOCABULARY_PLACES, pairs)
    for place in range(places):
        budget = characters // places
        for pair in source.pairs("train", place * pairs // places, (place + 1) * pairs // places):
            budget -= sum(map(len, pair))
            if budget < 0:
                break
            yield from pair


def tasks(plan: Metadata) -> list[Task]:
    """All shards of all splits, the train split first."""
    made = []
    for split, pairs in plan.pairs.items():
        shards = 1 if split != "train" else MANY_SHARDS if pairs >= MANY_PAIRS else FEW_SHARDS
        for index in range(shards):
            start, stop = index * pairs // shards, (index + 1) * pairs // shards
            made.append(Task(plan.name, split, index, shards, start, stop))
    return made


def _folders(plan: Metadata, data_dir: Path) -> Folders:
    return Folders(data_dir, unfinished_dir(data_dir, plan.name))


def _missing(plan: Metadata, data_dir: Path) -> list[Task]:
    """The shards that are not there, or not with their counts while these are still needed."""
    folders = _folders(plan, data_dir)

    def done(task: Task) -> bool:
        return folders.shard(task).exists() and (bool(plan.splits) or folders.note(task).exists())

    return [task for task in tasks(plan) if not done(task)]


def _make_missing(plan: Metadata, data_dir: Path, source: Source, report: Progress) -> None:
    missing, total = _missing(plan, data_dir), sum(plan.pairs.values())
    before = total - sum(task.stop - task.start for task in missing)
    report("pairs", before, total)
    vocabulary = open_vocabulary(data_dir / plan.vocab_file)
    folders = _folders(plan, data_dir)
    folders.notes.mkdir(exist_ok=True)
    make_shards(missing, source, vocabulary, folders, lambda done: report("pairs", before + done, total))


def _finished(plan: Metadata, data_dir: Path, source: Source, tmp_dir: Path) -> Metadata:
    """Writes the metadata and removes what was needed only on the way."""
    folders = _folders(plan, data_dir)
    if not plan.splits:
        splits = dict.fromkeys(plan.pairs, Counts())
        for task in tasks(plan):
            part = json.loads(folders.note(task).read_bytes())
            splits[task.split] += Counts.from_dict(part)
        if empty := [split for split, counts in splits.items() if not counts.examples]:
            raise T2TError(f"{source.name}: every pair of {empty[0]} has an empty side")
        plan = dataclasses.replace(plan, splits=splits)
        plan.save(metadata_path(data_dir, plan.name))
    shutil.rmtree(folders.notes)
    source.close()
    if tmp_dir.is_dir() and not any(tmp_dir.iterdir()):
        tmp_dir.rmdir()
    return plan
