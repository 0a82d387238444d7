"""The data of a student: its teacher's outputs as text, and the shards that are made of it.

FOLDER/outputs/                  without the original targets; FOLDER/outputs_and_originals/ with them
    text/train.en, train.de ...  a folder for --data_source
    text/counts.json             pairs that were kept and left out
    data/                        a data_dir with the teacher's vocabularies
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from t2t_revival.addons.distillation.blocks import read_block
from t2t_revival.addons.distillation.teacher_outputs import ANOTHER, TeacherOutputs, read_pairs
from t2t_revival.data.config import DataConfig, DataSpec, Metadata
from t2t_revival.data.corpus_generation import OnProgress
from t2t_revival.data.generation import generate
from t2t_revival.data.sources import FolderSource
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.errors import T2TError
from t2t_revival.problems.problem import TRAIN
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import atomic_write, buffered_write, exclusive_lock, writing


def student_data_dir(outputs: TeacherOutputs, original_targets: bool) -> Path:
    """The data_dir of a student that learns outputs, with or without the original targets."""
    return outputs.folder / ("outputs_and_originals" if original_targets else "outputs") / "data"


def make_student_data(
    outputs: TeacherOutputs,
    original_targets: bool,
    vocab_files: Sequence[Path],
    progress: OnProgress | None = None,
) -> dict[str, int]:
    """Makes a student's text and shards, unless they are complete; returns the counts of its pairs.

    Args:
        outputs: complete.
        original_targets: whether each source that has a reference is also paired with that.
        vocab_files: the teacher's vocabulary, or both, in the order of the data.
        progress: see `generation.generate`.

    Raises:
        T2TError: all outputs are empty, or the data cannot be written.
    """
    data_dir = student_data_dir(outputs, original_targets)
    text, metadata = data_dir.with_name("text"), outputs.data.metadata
    waiting = f"{outputs.folder}: another process is making a student's data there; waiting for it"
    on_wait = partial(progress, waiting, 0, 0) if progress else lambda: None
    with exclusive_lock(outputs.folder, None, on_wait):  # students may share the outputs
        if not outputs.data.problem.has_data(data_dir):
            with writing(f"to {text}", ANOTHER):
                text.mkdir(parents=True, exist_ok=True)
                _write_text(outputs, original_targets, metadata, text)
            spec = DataSpec(
                name=metadata.name,
                config=DataConfig(str(text), vocab_file=tuple(vocab_files)),
                default_source=str(text),
                make_source=lambda corpus, tmp_dir: FolderSource(
                    corpus.source, *_languages(metadata), tmp_dir
                ),
                default_vocab_size=lambda kind, pairs: 0,
            )
            generate(spec, data_dir, None, progress)
    return checked_json.load(text / "counts.json", f"restore a copy, or {ANOTHER}")


def _languages(metadata: Metadata) -> tuple[str, str]:
    """The languages of the data's two sides, as ends of file names."""
    languages = metadata.source_lang, metadata.target_lang
    return languages if languages[0] != languages[1] else ("inputs", "targets")


def _write_text(outputs: TeacherOutputs, original_targets: bool, metadata: Metadata, text: Path) -> None:
    """Writes the pairs of all splits, in the direction of the data."""
    languages = _languages(metadata)
    input_language, target_language = languages[::-1] if outputs.data.problem.was_reversed else languages
    for split in metadata.splits:
        if split != TRAIN:
            sides = read_pairs(outputs.files(split))
            for language, lines in zip((input_language, target_language), sides, strict=True):
                with buffered_write(text / f"{split}.{language}") as file:
                    file.write(to_bytes(lines))
    counts = {"sources": 0, "empty_outputs": 0, "pairs": 0}
    with (
        atomic_write(text / f"{TRAIN}.{input_language}") as inputs,
        atomic_write(text / f"{TRAIN}.{target_language}") as targets,
    ):
        for source, target in _training_pairs(outputs, original_targets, counts):
            inputs.write(to_bytes([source]))
            targets.write(to_bytes([target]))
            counts["pairs"] += 1
    if not counts["pairs"]:
        raise T2TError(f"{outputs.folder}: all {counts['sources']:,} outputs of the teacher are empty")
    checked_json.save(text / "counts.json", counts)


def _training_pairs(
    outputs: TeacherOutputs, original_targets: bool, counts: dict[str, int]
) -> Iterator[tuple[str, str]]:
    """Yields each source with its output, unless that is empty, and with its reference; counts them."""
    for block in outputs.blocks():
        for output, source, reference in read_block(*block):
            counts["sources"] += 1
            if output.strip():
                yield source, output
            else:
                counts["empty_outputs"] += 1
            if original_targets and reference.strip():
                yield source, reference
