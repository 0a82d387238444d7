"""`PairsSource`: sentence pairs from Python code, in the place of T2T's `generate_samples`."""

from __future__ import annotations

import inspect
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from t2t_revival.data.base_source import REQUIRED, SPLITS, Source, pair_fault
from t2t_revival.data.indexed_file import IndexedFile, index_text, numbered_lines
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write
from t2t_revival.utils.source_code import place_of

Pair = tuple[str, str] | Mapping[str, str]  # (source, target), or T2T's {"inputs": source, "targets": target}
Pairs = Iterable[Pair] | Callable[[], Iterable[Pair]]


class PairsSource(Source):
    """Pairs from iterables: lists, generators, or functions that return either.

    Each iterable is read once, from beginning to end, into a temporary file, from which several processes
    make the shards; a generator may be exhausted by this. When an interrupted t2t-datagen resumes, it reads
    them again and must get the same pairs in the same order.

    Args:
        name: equal for equal data.
        splits: for "train", "dev" and optionally "test", an iterable of pairs, or a function without
            arguments that returns one. A pair is (source, target), without line feeds, or T2T's
            {"inputs": source, "targets": target}.
        source_lang: the language of the inputs, such as "en".
        target_lang: the language of the targets.
        tmp_dir: the folder for temporary files that `make_source` is called with. `None` uses the system's.

    Example:
        def make_source(self, data_source, tmp_dir):
            return PairsSource("squares", {"train": squares(0, 90), "dev": squares(90, 100)}, tmp_dir=tmp_dir)

    Raises:
        T2TError: "train" or "dev" is missing, or a split has another name.
    """

    def __init__(
        self,
        name: str,
        splits: Mapping[str, Pairs],
        source_lang: str = "inputs",
        target_lang: str = "targets",
        tmp_dir: Path | None = None,
    ) -> None:
        frame = inspect.currentframe()
        caller = frame and frame.f_back
        self._place = f"{caller.f_code.co_filename}, line {caller.f_lineno}" if caller else name
        self.name, self.source_lang, self.target_lang = name, source_lang, target_lang
        self._tmp_dir = tmp_dir
        self._pairs = splits
        if fault := _fault(splits):
            raise T2TError(f"{self._place}: PairsSource {name!r}: {fault}")

    def __getstate__(self) -> dict[str, Any]:
        """Pickles the files instead of the iterables, which cannot be pickled."""
        self._files  # noqa: B018 (writes them)
        return {name: value for name, value in vars(self).items() if name not in ("_pairs", "_remove")}

    def splits(self) -> tuple[str, ...]:
        return tuple(self._files)

    def count(self, split: str) -> int:
        return self._files[split].lines

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        for line in numbered_lines(self._files[split], start, stop):
            source, target = json.loads(line)
            yield source, target

    def close(self) -> None:
        """Removes the temporary files."""
        if remove := vars(self).get("_remove"):
            remove()

    @cached_property
    def _files(self) -> dict[str, IndexedFile]:
        if self._tmp_dir:
            self._tmp_dir.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="t2t-pairs-", dir=self._tmp_dir))
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return {split: self._write(split, folder / split) for split in SPLITS if split in self._pairs}

    def _write(self, split: str, path: Path) -> IndexedFile:
        """Writes the pairs of a split, each as JSON on a line."""
        number, pairs = 0, self._pairs[split]
        with atomic_write(path) as file:
            for number, pair in enumerate(pairs() if callable(pairs) else pairs, start=1):
                sides = _sides(pair)
                if fault := pair_fault(sides):
                    raise T2TError(f"{self._place_of(split)}: pair {number} of {split} {fault}")
                file.write(f"{json.dumps(sides)}\n".encode())
        if not number:
            raise T2TError(
                f"{self._place_of(split)}: no pairs of {split} (a generator is exhausted after one "
                "pass: give the function instead)"
            )
        return index_text(path, path)

    def _place_of(self, split: str) -> str:
        """Returns the place of a split's function or generator, or of this source's construction."""
        pairs = self._pairs[split]
        return place_of(pairs) if callable(pairs) or inspect.isgenerator(pairs) else self._place


def _fault(splits: Mapping[str, Pairs]) -> str | None:
    """Describes the fault of invalid arguments; `None` if they are valid."""
    if missing := [split for split in REQUIRED if split not in splits]:
        return f"{missing[0]!r} is missing; it has {', '.join(map(str, splits)) or 'no splits'}"
    for split in splits:
        if split not in SPLITS:
            return f"split {split!r} is not one of {', '.join(SPLITS)}"
    return None


def _sides(pair: Any) -> Any:
    """Converts T2T's dictionary to a tuple."""
    if isinstance(pair, Mapping) and set(pair) == {"inputs", "targets"}:
        return pair["inputs"], pair["targets"]
    return pair
