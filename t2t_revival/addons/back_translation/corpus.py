"""A corpus whose targets are monolingual text, and whose sources a model of the other direction has made.

FOLDER/origin.json, decoded/   the outputs of the model; see `distillation.blocks`
FOLDER/train.en, train.de      the corpus, for --data_source: for a model from German, outputs and text
FOLDER/corpus.json             its noise, and the counts of its lines
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.addons.back_translation.noise import WordNoise
from t2t_revival.addons.distillation.blocks import DecodedBlocks, Prepare, option_values, read_block
from t2t_revival.data.base_source import read_text
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.lines.notes import OnNote
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import SplitFiles
from t2t_revival.problems.problem import TRAIN, Problem
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import atomic_write, buffered_write, exclusive_lock, writing
from t2t_revival.utils.made_of import MadeOf

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

ANOTHER = "give another --corpus_dir"
NO_NOISE = "none"
COUNTS = ("lines", "left_out", "empty_outputs", "pairs")  # of `make_corpus`
CHUNK = 10_000  # lines that are read at once


@dataclass(frozen=True)
class MonolingualText:
    """Lines of files, plain or .gz.

    Attributes:
        files: in order.
        count: number of lines.
        digest: first 16 digits of a SHA-256 of the lines.
    """

    files: Sequence[Path]
    count: int
    digest: str

    @classmethod
    def open(cls, files: Sequence[Path]) -> MonolingualText:
        """Reads all lines once.

        Raises:
            T2TError: a file is empty, corrupt or not UTF-8.
            OSError: a file cannot be read.
        """
        count, digest = 0, hashlib.sha256()
        for file in files:
            before, lines = count, read_text(file)
            while chunk := list(islice(lines, CHUNK)):
                digest.update(to_bytes(chunk))
                count += len(chunk)
            if count == before:
                raise T2TError(f"{file}: the file is empty; leave it out")
        return cls(files, count, f"sha256:{digest.hexdigest()[:16]}")

    def lines(self) -> Iterator[str]:
        """Yields the lines."""
        return chain.from_iterable(map(read_text, self.files))


@dataclass(frozen=True)
class BackTranslation(DecodedBlocks):
    """A corpus of back-translations, in a folder.

    Attributes:
        model: its sources are in the language of the text.
        problem: the model's problem.
        fingerprint: of the model's vocabulary.
        options: how to decode.
        text: the corpus's targets.
        noise: changes the outputs in the corpus. `None` leaves them as they are.
        engine: the engine that decodes and its precision; see `Translator.engine`.

    Raises:
        T2TError: the problem's outputs are no text, or the options ask for more than one on a line.
    """

    model: TrainedModel
    problem: Problem
    fingerprint: str
    options: DecodeHParams
    text: MonolingualText
    noise: WordNoise | None = None
    engine: str = "tensorflow, float32"
    another = ANOTHER

    def __post_init__(self) -> None:
        if not self.problem.targets_are_text:
            raise T2TError(f"the outputs of {self.problem.name} are no text, of which a corpus is made")
        capabilities.check(self.options.asked(), capabilities.TRANSLATIONS)

    def origin(self) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "problem": self.problem.name,
            "monolingual": self.text.digest,
            "engine": self.engine,
            "block_lines": self.block_lines,
            **option_values(self.options, [self.model], self.fingerprint),
        }

    @property
    def corpus_files(self) -> tuple[Path, Path]:
        """The files of outputs and text, which end with their languages, or with "inputs" and "targets".

        Without languages, the names are those of the sides in the data of the problem.
        """
        text, output = self.problem.source_lang, self.problem.target_lang
        if not text or not output or text == output:
            text, output = ("targets", "inputs") if self.problem.was_reversed else ("inputs", "targets")
        return self.folder / f"{TRAIN}.{output}", self.folder / f"{TRAIN}.{text}"

    def _plan(self, translator: Translator, on_note: OnNote) -> tuple[dict[str, int], Prepare]:
        lines, position = self.text.lines(), 0

        def prepare(block: SplitFiles, start: int) -> tuple[list[str], None]:
            nonlocal position
            texts = islice(lines, start - position, start - position + self.block_lines)
            position = start + self.block_lines
            kept = [
                line
                for line in map(str.strip, texts)
                if line and 1 < len(translator.encode(line)) <= translator.max_length  # EOS is one
            ]
            with buffered_write(block.inputs) as file:
                file.write(to_bytes(kept))
            return kept, None

        return {"lines": self.text.count}, prepare

    def _prepare_folder(self) -> None:
        """Checks that the folder has no corpus already, which this one would replace."""
        if existing := sorted(self.folder.glob(f"{TRAIN}.*")):
            raise T2TError(f"{existing[0]} exists, and is not of this command: {ANOTHER}")

    def stored_counts(self) -> dict[str, int] | None:
        """The counts of the corpus as `make_corpus` returns them; `None` where it is not written yet.

        Raises:
            T2TError: the folder holds other outputs, or a corpus with other noise.
        """
        path, again = self.folder / "corpus.json", "and the corpus is made again from the same outputs"
        if not (self.stored() and path.exists()):
            return None
        stored = checked_json.load(path, f"remove it, {again}")
        remedy = f"{ANOTHER}, or remove {path}, {again}"
        MadeOf(stored).check(self._noise, f"{self.folder} holds a corpus with", remedy)
        complete = all(file.exists() for file in self.corpus_files)
        return {name: stored[name] for name in COUNTS} if complete else None

    @property
    def _noise(self) -> MadeOf:
        return MadeOf({"noise": str(self.noise or NO_NOISE)})

    def make_corpus(self) -> dict[str, int] | None:
        """Writes the corpus, unless that is done; lines whose output is empty are left out.

        Returns:
            Numbers of lines of the text, of those left out as blank or too long and as "empty_outputs", and
            of "pairs"; `None` while there are blocks that are not complete.

        Raises:
            T2TError: as `stored_counts`; all outputs are empty, or the corpus cannot be written.
        """
        with exclusive_lock(self.folder, None):
            if not self.are_complete():
                return None
            if counts := self.stored_counts():
                return counts
            outputs, texts = self.corpus_files
            with writing(f"to {self.folder}"):
                counts = self._write_corpus(outputs, texts)
                checked_json.save(self.folder / "corpus.json", {**self._noise.values, **counts})
        return counts

    def _write_corpus(self, output_file: Path, text_file: Path) -> dict[str, int]:
        counts = dict(zip(COUNTS, (self.text.count, self.text.count, 0, 0), strict=True))
        with atomic_write(output_file) as outputs, atomic_write(text_file) as texts:
            for number, (output, text) in self._pairs():
                counts["left_out"] -= 1
                counts["pairs" if output.strip() else "empty_outputs"] += 1
                if output.strip():
                    noised = self.noise.apply(output, number) if self.noise else output
                    outputs.write(to_bytes([noised]))
                    texts.write(to_bytes([text]))
            if not counts["pairs"]:
                raise T2TError(
                    f"{self.folder}: no pair is left: {counts['left_out']:,} lines are blank or longer than "
                    f"max_length, {counts['empty_outputs']:,} outputs are empty; {ANOTHER} and other text"
                )
        return counts

    def _pairs(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yields the outputs, each with its line, by a number of its own."""
        for place, block in enumerate(self.blocks()):
            pairs = read_block(block.outputs, block.inputs)
            yield from enumerate(pairs, start=place * self.block_lines + 1)
