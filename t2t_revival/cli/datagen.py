"""`t2t-datagen`: generates the vocabulary and the shards of a problem.

t2t-datagen --problem=translate_ende [--data_source=FOLDER|sample|wmt14|tfds:NAME/CONFIG|hf:OWNER/NAME/CONFIG]
            [--data_source="NAME=SOURCE:WEIGHT,NAME=SOURCE:WEIGHT"|CORPORA.yaml]
            [--data_dir=DIR] [--clean] [--runner=DirectRunner|FlinkRunner|SparkRunner|DataflowRunner]

Generates the vocabulary and the TFRecord shards of a problem. Existing files are verified and kept; missing
or corrupt shards are generated again, with the same bytes. After an interruption the same command resumes.
Where a file of the source has changed since, this is an error; --overwrite makes the data again.

With --runner, workers of Apache Beam generate the shards, with the same bytes. data_dir and the files of the
source must be in folders that this machine and all workers share, at the same paths.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from t2t_revival import registry
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.problem_flags import DATA_DIR, DataFlags
from t2t_revival.data.cleaning import RULES
from t2t_revival.data.config import Metadata, SplitCounts, cleaned_path
from t2t_revival.data.workers import ShardRunner
from t2t_revival.errors import CommandLine
from t2t_revival.hparams.auto import AUTO
from t2t_revival.problems.problem import TRAIN, Problem
from t2t_revival.utils.extras import require

COLUMNS = ("pairs", "skipped", "shards", "source tokens", "target tokens")


@dataclass(frozen=True)
class DatagenFlags(DataFlags):
    needs = (("beam_pipeline_options", "runner"),)
    runner: str = flag(
        "",
        "Runner of Apache Beam that generates the shards: DirectRunner (on this machine), FlinkRunner, "
        "SparkRunner, DataflowRunner or another one. Without it, processes on this machine generate them "
        "without Beam.",
    )
    overwrite: bool = flag(
        False,
        "Replace this problem's data in data_dir, and its vocabulary, as where files of the source have "
        "changed, or another source or vocabulary is wanted. Data of other problems stays.",
    )
    beam_pipeline_options: tuple[str, ...] = flag(
        (), "Options of Beam and its runner, as in TensorFlow Datasets: project=PROJECT,region=REGION."
    )


def _datagen(flags: DatagenFlags) -> None:
    problem = flags.named_problem()
    metadata = flags.generate_data(problem, _shard_runner(flags), flags.overwrite)
    for part in (
        _table(_counts(metadata, problem, flags)),
        *_dropped(metadata),
        _places(metadata, problem, flags),
    ):
        print(*part, "", sep="\n")
    print(f"next:\n{_next(metadata, problem, flags)}")


def _shard_runner(flags: DatagenFlags) -> ShardRunner | None:
    """Returns the runner of `--runner`; `None` is processes on this machine."""
    if not flags.runner:
        return None
    if not flags.debug:
        logging.disable(logging.WARNING)  # Beam warns of packages for Google Cloud, while it is imported
    try:
        require("apache_beam", f"--runner={flags.runner}")
        from t2t_revival.data.beam import BeamShardRunner

        return BeamShardRunner(flags.runner, list(flags.beam_pipeline_options))
    finally:
        logging.disable(logging.NOTSET)


def _dropped(metadata: Metadata) -> Iterator[list[str]]:
    """Yields the table of the pairs of train that --clean has dropped, if it was given."""
    if not metadata.clean:
        return
    cleaned = metadata.splits["train"].cleaned
    rows = [
        ("rule", "dropped", ""),
        *((rule.name, f"{cleaned.get(rule.name, 0):,}", rule.drops) for rule in RULES),
    ]
    names, numbers = (max(len(row[column]) for row in rows) for column in (0, 1))
    yield [f"{name:{names}}  {number:>{numbers}}  {drops}".rstrip() for name, number, drops in rows]


def _counts(metadata: Metadata, problem: Problem, flags: DatagenFlags) -> Iterator[tuple[str, ...]]:
    """Yields the rows of the table of counts: of each split, and of a mixture each corpus of it."""
    data = problem.open(flags.data_path) if metadata.corpora else None
    mixed = ("corpus", "share") if data else ()
    yield ("split", *mixed, *COLUMNS)
    total = sum(metadata.corpora.values())
    for split, counts in metadata.splits.items():
        yield (split, *(("all", "") if mixed else ()), *_cells(counts))
        for name, corpus in data.corpora(split).items() if data else ():
            share = f"{metadata.corpora[name] / total:.1%}" if split == TRAIN else ""
            yield (split, name, share, *_cells(corpus.metadata.splits[split]))


def _cells(counts: SplitCounts) -> Iterator[str]:
    shards, tokens = len(counts.shard_bytes), (counts.source_tokens, counts.target_tokens)
    return (f"{count:,}" for count in (counts.examples, counts.skipped, shards, *tokens))


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]


def _places(metadata: Metadata, problem: Problem, flags: DatagenFlags) -> list[str]:
    folder = flags.data_path
    swapped = f", read from {metadata.target_lang} to {metadata.source_lang}"
    places = [
        f"source      {metadata.source} ({metadata.source_lang} to {metadata.target_lang})",
        *(f"vocabulary  {made.size:,} pieces, {folder / made.name}" for made in metadata.vocabularies),
        f"shards      {folder}/{metadata.name}-*{swapped if problem.was_reversed else ''}",
    ]
    if metadata.clean:
        places.append(f"dropped     the first pairs of each rule, {cleaned_path(folder, metadata.name)}")
    return places


def _next(metadata: Metadata, problem: Problem, flags: DatagenFlags) -> CommandLine:
    """The command that trains on this data."""
    hparams_set, _ = registry.usual_hparams(problem, metadata)
    folder = flags.data_dir if flags.data_dir != DATA_DIR else None
    names = {"problem": flags.problem, "hparams_set": hparams_set if hparams_set != AUTO else None}
    return CommandLine("t2t-trainer", **names, data_dir=folder, t2t_usr_dir=flags.t2t_usr_dir)


main = Command(DatagenFlags, _datagen, __doc__)
