"""From a source to shards in a data_dir: many processes, restartable, repairable, nothing half-written.

Each shard is a contiguous range of the source's pairs, made by one task. A plan in
`.PROBLEM.unfinished/` says what is being made; beside it lie the counts of each shard that is done. The
metadata is written last, and then that folder goes.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from t2t_revival import checked_json
from t2t_revival.data.metadata import Counts, Metadata, check_same, metadata_path
from t2t_revival.data.records import fault, remove_temporary
from t2t_revival.data.source_checks import counted, read_pairs
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabularies import TextEncoder, open_vocabulary
from t2t_revival.data.vocabulary import Vocabulary, VocabularyTooLargeError, fingerprint
from t2t_revival.data.workers import Engine, Folders, Task, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.files import check_file_name, is_file_name, only_one, writing

Progress = Callable[[str, int, int], None]
MISSING = "missing"
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
        references: what outputs of dev or test are measured against, a line each, for a source and a split;
            None: the targets.
        vocab_file: the vocabulary; None: one is learned.
    """

    name: str
    data_source: str | None
    default_source: str
    make_source: Callable[[str, Path | None], Source]
    vocab_size: int
    default_vocab_size: Callable[[Source], int]
    user_symbols: Callable[[Source], Sequence[str]] = lambda source: ()
    references: Callable[[Source, str], Iterable[str]] | None = None
    vocab_file: Path | None = None


def generate(
    recipe: Recipe,
    data_dir: Path,
    tmp_dir: Path | None,
    progress: Progress | None,
    engine: Engine = make_shards,
) -> Metadata:
    """Makes what is missing of a problem's data.

    Args:
        recipe: what to make.
        data_dir: where it goes; made if missing.
        tmp_dir: where compressed files are unpacked; None: `data_dir/tmp`.
        progress: called with a stage, pairs done and pairs in all. A stage is "verifying", "reading",
            "vocabulary", "pairs", or says which shard is made anew and why.
        engine: what makes the shards; other than in processes on this machine, see `data.beam`.

    Returns:
        The metadata, as it is on the disk.

    Raises:
        T2TError: the source cannot be read, or has changed; the data_dir cannot be written, holds data of
            another source or vocabulary, or another process is at work there; a name is none for a file.
    """
    if not is_file_name(recipe.name):
        raise T2TError(f"problem {recipe.name!r}: its files cannot be named so")
    if recipe.vocab_file:
        check_file_name(recipe.vocab_file)
    report = progress or (lambda stage, done, total: None)
    with _without_empty_folders(data_dir, unfinished_dir(data_dir, recipe.name)):
        return _generate(recipe, data_dir, tmp_dir or data_dir / "tmp", report, engine)


def _generate(recipe: Recipe, data_dir: Path, tmp_dir: Path, report: Progress, engine: Engine) -> Metadata:
    plan = _found(recipe, data_dir)
    source = _source(recipe, data_dir, plan, tmp_dir)
    if plan and not _missing_references(recipe, plan, data_dir) and _complete(plan, data_dir, report):
        return plan
    with _only_one(data_dir), _nothing_unpacked(recipe, data_dir, source, tmp_dir):
        plan = _found(recipe, data_dir)
        remove_temporary(data_dir, recipe.name)
        report("reading", 0, 0)
        plan = _planned(recipe, data_dir, source, plan)
        plan = _with_vocabulary(recipe, data_dir, source, plan, report)
        _make_missing(plan, data_dir, source, report, engine)
        _write_references(recipe, plan, data_dir, source)
        return _finished(plan, data_dir, source, tmp_dir)


@contextmanager
def _without_empty_folders(data_dir: Path, notes: Path) -> Iterator[None]:
    """Makes `data_dir`; after a failure removes the folders that it made, and `notes`, if they are empty."""
    made = [folder for folder in (data_dir, *data_dir.parents) if not folder.exists()]
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise T2TError(f"--data_dir={data_dir}: cannot be made ({error.strerror})") from error
    try:
        yield
    except BaseException:
        with suppress(OSError):  # not empty, or not there
            notes.rmdir()
        with suppress(OSError):
            for folder in made:
                folder.rmdir()
        raise


@contextmanager
def _nothing_unpacked(recipe: Recipe, data_dir: Path, source: Source, tmp_dir: Path) -> Iterator[None]:
    """After a failure before there is a plan, removes what the source has unpacked."""
    try:
        yield
    except BaseException:
        if not _found(recipe, data_dir):
            _close(source, tmp_dir)
        raise


def _close(source: Source, tmp_dir: Path) -> None:
    source.close()
    with suppress(OSError):  # not empty, or not there
        tmp_dir.rmdir()


def unfinished_dir(data_dir: Path, name: str) -> Path:
    """Where the plan of a run lies that has not finished, and the counts of the shards it has made."""
    return data_dir / f".{name}.unfinished"


def _source(recipe: Recipe, data_dir: Path, plan: Metadata | None, tmp_dir: Path) -> Source:
    """The source that was asked for, or else the one that data_dir was begun with."""
    asked = recipe.data_source or (plan.source if plan else recipe.default_source)
    source = recipe.make_source(asked, tmp_dir)
    if plan:
        if source.name != plan.source:
            source.check()
        check_same(data_dir, plan, source.name, recipe.vocab_size, recipe.vocab_file)
    return source


def _complete(plan: Metadata, data_dir: Path, report: Progress) -> bool:
    vocabulary = data_dir / plan.vocab_file
    if not plan.splits or not vocabulary.exists() or fingerprint(vocabulary) != plan.vocab_fingerprint:
        return False
    report("verifying", 0, 0)
    return not _faults(plan, data_dir)


@contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """Keeps a second process from writing to the same data_dir at the same time."""
    if not os.access(data_dir, os.W_OK | os.X_OK):
        raise T2TError(f"--data_dir={data_dir}: cannot be written; give one that can")
    with only_one(data_dir, f"{data_dir}: another process is generating data there; wait for it"):
        yield


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
    pairs = counted(source)
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
        if fingerprint(path) != plan.vocab_fingerprint:
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
    notes, symbols = unfinished_dir(data_dir, recipe.name), recipe.user_symbols(source)
    if recipe.vocab_file:
        given = _with_symbols(open_vocabulary(recipe.vocab_file), symbols)
        copy = notes / recipe.vocab_file.name
        with writing(copy) as file:
            file.write(given.content)
        return open_vocabulary(copy)
    size = recipe.vocab_size or plan.vocab_size or recipe.default_vocab_size(source)
    file_name = f"vocab.{recipe.name}.{{}}.spm"
    if (data_dir / file_name.format(size)).exists():
        return _with_symbols(Vocabulary(data_dir / file_name.format(size)), symbols)
    report("vocabulary", 0, plan.pairs["train"])
    lines = list(sample_lines(source, plan.pairs["train"]))
    try:
        return Vocabulary.train(lines, notes / file_name.format(size), size, symbols)
    except VocabularyTooLargeError as error:
        if recipe.vocab_size:
            raise
        size = error.largest
        return Vocabulary.train(lines, notes / file_name.format(size), size, symbols)


def _with_symbols(vocabulary: TextEncoder, symbols: Sequence[str]) -> TextEncoder:
    """The vocabulary, where it has what the problem needs."""
    if isinstance(vocabulary, Vocabulary):
        vocabulary.check_symbols(symbols)
    elif symbols:
        raise T2TError(f"{vocabulary.path}: T2T's vocabularies have no pieces such as {symbols[0]!r}")
    return vocabulary


def sample_lines(source: Source, pairs: int, characters: int = VOCABULARY_CHARACTERS) -> Iterator[str]:
    """Lines of both sides of train, from places evenly spread, no more than so many characters in all."""
    places = min(VOCABULARY_PLACES, pairs)
    for place in range(places):
        budget = characters // places
        for pair in read_pairs(source, "train", place * pairs // places, (place + 1) * pairs // places):
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


def _faults(plan: Metadata, data_dir: Path) -> dict[Task, str]:
    """The shards that must be made: what is not there, or not with its counts, or not as it was written."""
    folders = _folders(plan, data_dir)
    faults = {}
    for task in tasks(plan):
        size = plan.splits[task.split].shard_bytes[task.index] if plan.splits else _noted_size(task, folders)
        if size is None or not folders.shard(task).exists():
            faults[task] = MISSING
        elif found := fault(folders.shard(task), size):
            faults[task] = found
    return faults


def _noted_size(task: Task, folders: Folders) -> int | None:
    """Bytes of a shard of an unfinished run; None: it is not made, or nobody knows what is in it."""
    try:
        return _noted(task, folders).shard_bytes[0]
    except (OSError, T2TError):
        return None


def _noted(task: Task, folders: Folders) -> Counts:
    """The counts of a shard of an unfinished run."""
    return Counts.from_dict(checked_json.load(folders.note(task), "remove it and start again"))


def _make_missing(plan: Metadata, data_dir: Path, source: Source, report: Progress, engine: Engine) -> None:
    missing, total = _faults(plan, data_dir), sum(plan.pairs.values())
    for task, why in missing.items():
        if why != MISSING:
            report(f"making {task.file_name} anew: {why}", 0, 0)
    before = total - sum(task.stop - task.start for task in missing)
    report("pairs", before, total)
    vocabulary = open_vocabulary(data_dir / plan.vocab_file)
    folders = _folders(plan, data_dir)
    folders.notes.mkdir(exist_ok=True)
    engine(list(missing), source, vocabulary, folders, lambda done: report("pairs", before + done, total))


def references_path(data_dir: Path, name: str, split: str) -> Path:
    """The file of what a split's outputs are measured against, where that is not its targets."""
    return data_dir / f"{name}-{split}.references"


def _missing_references(recipe: Recipe, plan: Metadata, data_dir: Path) -> list[str]:
    """Splits whose file is not there."""
    measured = [split for split in plan.pairs if split != "train"] if recipe.references else []
    return [split for split in measured if not references_path(data_dir, plan.name, split).exists()]


def _write_references(recipe: Recipe, plan: Metadata, data_dir: Path, source: Source) -> None:
    for split in _missing_references(recipe, plan, data_dir):
        assert recipe.references is not None
        lines = list(recipe.references(source, split))
        if len(lines) != plan.pairs[split]:
            raise T2TError(
                f"{source.name} has changed since {data_dir} was begun: its {split} split had "
                f"{plan.pairs[split]} trees and has {len(lines)}; give another --data_dir"
            )
        with writing(references_path(data_dir, plan.name, split)) as file:
            file.writelines(f"{line}\n".encode() for line in lines)


def _finished(plan: Metadata, data_dir: Path, source: Source, tmp_dir: Path) -> Metadata:
    """Writes the metadata and removes what was needed only on the way."""
    folders = _folders(plan, data_dir)
    if not plan.splits:
        splits = dict.fromkeys(plan.pairs, Counts())
        for task in tasks(plan):
            splits[task.split] += _noted(task, folders)
        if empty := [split for split, counts in splits.items() if not counts.examples]:
            raise T2TError(f"{source.name}: every pair of {empty[0]} has an empty side")
        plan = dataclasses.replace(plan, splits=splits)
        plan.save(metadata_path(data_dir, plan.name))
    for task in tasks(plan):
        if folders.shard(task).stat().st_size != plan.splits[task.split].shard_bytes[task.index]:
            raise T2TError(
                f"{folders.shard(task)}: made anew, and not what it was: {source.name} has changed; "
                "give another --data_dir"
            )
    shutil.rmtree(folders.notes)
    _close(source, tmp_dir)
    return plan
