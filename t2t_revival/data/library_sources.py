"""Sources that a library downloads: sets of TensorFlow Datasets and of the Hugging Face Hub."""

from __future__ import annotations

import abc
import os
import textwrap
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from t2t_revival.data.base_source import Source, folder_files
from t2t_revival.errors import T2TError
from t2t_revival.utils import native_log
from t2t_revival.utils.extras import require

SPLIT_NAMES = (("train", ("train",)), ("dev", ("validation", "dev", "valid")), ("test", ("test",)))
TEXT = ("string", "large_string", "string_view")  # types of Arrow columns
SAVED = ("dataset_dict.json", "state.json")  # of DatasetDict.save_to_disk and Dataset.save_to_disk
ROWS = 1000  # of Arrow columns that are read at once
SECONDS = 10.0  # of a host that does not answer: for name, connection and answer, of all hosts together


class LibrarySource(Source):
    """A translation set of a library, with the library's own names of splits."""

    _dataset: str

    @property
    @abc.abstractmethod
    def _sizes(self) -> dict[str, int]:
        """Number of pairs of each split, by the set's own names."""

    def splits(self) -> tuple[str, ...]:
        return tuple(self._split_names)

    def count(self, split: str) -> int:
        return self._sizes[self._split_names[split]]

    @cached_property
    def _split_names(self) -> dict[str, str]:
        """The set's own name of each existing split."""
        names = {}
        for split, candidates in SPLIT_NAMES:
            if present := [name for name in candidates if self._sizes.get(name)]:
                names[split] = present[0]
        return names

    def _require_languages(self, columns: Iterable[str]) -> None:
        for language in (self.source_lang, self.target_lang):
            if language not in columns:
                raise T2TError(f"--data_source={self.name} has {', '.join(columns)}, not {language!r}")

    def _check_reachable(self, hosts: Iterable[str]) -> None:
        """Raises the error of a set that is to be downloaded from hosts of which none answers."""
        if hosts:
            raise T2TError(
                f"--data_source={self.name}: not on this machine, and nothing answers at {', '.join(hosts)}: "
                f"check network and proxy, or choose a source that is here; {self._choices}"
            )

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """Raises T2TError for any error of the set's own code, the network or the disk."""
        try:
            yield
        except T2TError:
            raise
        except Exception as error:
            reason = textwrap.shorten(" ".join(str(error).split("\n")[:2]), 300, placeholder=" ...")
            raise T2TError(
                f"--data_source={self.name}: cannot be loaded ({type(error).__name__}: {reason}); "
                + self._choices
            ) from error

    @contextmanager
    def _datasets(self, local: bool = False, offline: bool = False) -> Iterator[Any]:
        """Yields the library `datasets`, which reads nothing but its cache if the hub does not answer.

        It would try for 24 seconds where the hub has no address, and for over 300 where it keeps silent.
        `local` is for folders, which need no hub; `offline` forbids to ask it.
        """
        datasets = require("datasets", f"--data_source={self.name}")
        from huggingface_hub import constants

        before = [(module, module.HF_HUB_OFFLINE) for module in (datasets.config, constants)]
        asks = not (local or offline or any(was for _, was in before))
        hosts = silent_hosts([constants.ENDPOINT]) if asks else []
        for module, was in before:
            module.HF_HUB_OFFLINE = was or offline or bool(hosts)
        try:
            yield datasets
        except Exception:
            self._check_reachable(hosts)
            raise
        finally:
            for module, was in before:
                module.HF_HUB_OFFLINE = was


class TfdsSource(LibrarySource):
    """A translation set of TensorFlow Datasets, also of its `huggingface:` namespace.

    An example's features are keyed by language, either directly or inside "translation".
    """

    kind = "tfds"

    def __init__(self, dataset: str, source_lang: str, target_lang: str) -> None:
        self._dataset = dataset
        self._data_dir = os.environ.get("TFDS_DATA_DIR")
        self.name = f"tfds:{dataset}"
        self.source_lang, self.target_lang = source_lang, target_lang

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_builder", "_found")}

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """Implements `Source.pairs`; a line break inside a sentence becomes a space."""
        with native_log.quiet():  # also in a process that makes shards
            tfds = _tensorflow_datasets()
        part = f"{self._split_names[split]}[{start}:{stop}]"
        languages = (self.source_lang, self.target_lang)
        with self._loading():
            for example in tfds.as_numpy(self._builder.as_dataset(split=part, shuffle_files=False)):
                sides = example.get("translation", example)
                self._require_languages(sides)
                source, target = (sides[name].decode("utf-8").replace("\n", " ") for name in languages)
                yield source, target

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {name: int(split.num_examples) for name, split in self._builder.info.splits.items()}

    def version(self) -> str:
        """Implements `Source.version`, without the network; sets of the hub are not asked for theirs."""
        if self._dataset.startswith("huggingface:"):
            return ""
        with suppress(T2TError):  # not on this machine, which is no fault of data that was made elsewhere
            return str(self._found.info.version)
        return ""

    def download_note(self) -> str:
        """Implements `Source.download_note`; the size is that of the files whose size TFDS knows."""
        builder = self._found
        if builder.data_path.exists() or self._silent:
            return ""
        known = sum(int(info.size or 0) for info in (builder.url_infos or {}).values())
        size = f"at least {known / 1e9:.1f} GB" if known >= 1e8 else "of unknown size"
        own = folder_files(self.source_lang, self.target_lang)
        return (
            f"downloading {self.name}, {size}, and preparing it in {builder.data_path}; for a corpus of your "
            f"own, give --data_source=FOLDER with {own}"
        )

    @cached_property
    def _builder(self) -> Any:
        with self._loading(), self._hub():
            builder = self._found
            if not builder.data_path.exists():
                self._check_reachable(self._silent)
            builder.download_and_prepare()
        return builder

    @cached_property
    def _silent(self) -> list[str]:
        """The hosts of the set, if none of them answers."""
        return silent_hosts(self._found.url_infos or ())

    @cached_property
    def _found(self) -> Any:
        """The library's builder of the set, which may not be on this machine."""
        with native_log.quiet():
            tfds = _tensorflow_datasets()
        same = self._data_dir == os.environ.get("TFDS_DATA_DIR")  # false in a worker on another machine
        data_dir = {} if same else {"data_dir": self._data_dir}
        with self._loading(), self._hub():
            return tfds.builder(self._dataset, **data_dir)

    def _hub(self) -> AbstractContextManager[Any]:
        return self._datasets() if self._dataset.startswith("huggingface:") else nullcontext()


class HuggingFaceSource(LibrarySource):
    """A set of the Hugging Face Hub, or a folder that its `datasets` library has written or can read.

    The languages are columns of text, or fields of the column "translation". Sets are not streamed, since a
    stream has no random access: the library converts them to Arrow files in its cache, and workers map these
    into memory and read their ranges of pairs, without the network.
    """

    kind = "hf"

    def __init__(self, dataset: str, source_lang: str, target_lang: str) -> None:
        folder = Path(dataset).expanduser()
        is_path = dataset.startswith(("/", ".", "~")) or folder.is_dir()
        self._folder = folder.resolve() if is_path else None
        self._dataset = dataset
        self.name = f"hf:{self._folder or dataset}"
        self.source_lang, self.target_lang = source_lang, target_lang

    def check(self) -> None:
        if self._folder and not self._folder.is_dir():
            raise T2TError(f"--data_source={self.name}: no such folder; {self._choices}")

    def files(self) -> list[Path]:
        """Implements `Source.files`: of a folder, all files in it."""
        if not self._folder:
            return []
        return sorted(path for path in self._folder.rglob("*") if path.is_file())

    def version(self) -> str:
        """Implements `Source.version`: the library's hash of what is in the cache; the hub is not asked."""
        if self._folder:
            return ""
        owner, *rest = self._dataset.split("/", 2)
        with suppress(T2TError), self._loading(), self._datasets(offline=True) as datasets:
            builder = datasets.load_dataset_builder("/".join([owner, *rest[:1]]), *rest[1:])
            return str(builder.hash or "")
        return ""  # not on this machine, which is no fault of data that was made elsewhere

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """Implements `Source.pairs`; a line break inside a text becomes a space, and null an empty text."""
        part = self._parts[self._split_names[split]].with_format("arrow")
        found = {field.name: str(field.type) for field in part[:0].flatten().schema}
        outer = "translation." if any(name.startswith("translation.") for name in found) else ""
        types = {name.removeprefix(outer): kind for name, kind in found.items() if name.startswith(outer)}
        self._require_languages(types)
        languages = (self.source_lang, self.target_lang)
        for language in languages:
            if types[language] not in TEXT:
                raise T2TError(f"--data_source={self.name}: {language!r} is {types[language]}, not text")
        with self._loading():
            for first in range(start, stop, ROWS):
                rows = part[first : min(first + ROWS, stop)].flatten()
                for pair in zip(*(rows[outer + name].to_pylist() for name in languages), strict=True):
                    source, target = ((text or "").replace("\n", " ") for text in pair)
                    yield source, target

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {name: part.num_rows for name, part in self._parts.items()}

    @cached_property
    def _parts(self) -> dict[str, Any]:
        """The library's `Dataset` of each split, by its own name; pickled as paths of files."""
        self.check()
        with self._loading(), self._datasets(local=bool(self._folder)) as datasets:
            if not self._folder:
                owner, *rest = self._dataset.split("/", 2)
                return datasets.load_dataset("/".join([owner, *rest[:1]]), *rest[1:])
            if not any((self._folder / name).is_file() for name in SAVED):
                return datasets.load_dataset(str(self._folder))
            saved = datasets.load_from_disk(str(self._folder))
            return saved if isinstance(saved, dict) else {"train": saved}


def _tensorflow_datasets() -> Any:
    """Imports the library, and TensorFlow, which it would import later."""
    import tensorflow  # noqa: F401
    import tensorflow_datasets

    return tensorflow_datasets


def silent_hosts(urls: Iterable[str], seconds: float = SECONDS) -> list[str]:
    """Returns the hosts of URLs, such as "http://www.statmt.org", if none of them answers in `seconds`.

    Proxies of the environment are used. The list is empty where one host answers, whatever it says, or cannot
    be asked (gs://).
    """
    hosts = sorted({f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls)})
    answers: SimpleQueue[bool] = SimpleQueue()
    for host in hosts:  # by threads that may be left behind: the look-up of a name has no timeout
        Thread(target=lambda host=host: answers.put(_answers(host, seconds)), daemon=True).start()
    end = time.monotonic() + seconds
    for _ in hosts:
        try:
            if answers.get(timeout=max(0.0, end - time.monotonic())):
                return []
        except Empty:
            break
    return hosts


def _answers(host: str, seconds: float) -> bool:
    import requests

    try:
        requests.head(host, timeout=seconds)
    except requests.RequestException as error:  # of another scheme, for one
        is_silent = isinstance(error, requests.ConnectionError | requests.Timeout)
        return not is_silent or isinstance(error, requests.exceptions.SSLError)
    return True
