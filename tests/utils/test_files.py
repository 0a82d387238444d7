"""Files: written whole or not at all; lines are those that an editor shows."""

import gzip
import os
import threading
import time
from pathlib import Path

import pytest

from t2t_revival import T2TError
from t2t_revival.utils.files import (
    atomic_write,
    check_apart,
    check_for_tensorflow,
    check_utf8,
    check_writable,
    exclusive_lock,
    file_lines,
    path_of,
    text_lines,
)
from t2t_revival.utils.score_events import ScoreEvents


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_write(path) as file:
        file.write(b"all")
        assert not path.exists()
    assert path.read_bytes() == b"all"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("\ufeffa\r\nb\r\n", ["a", "b"]),
        ("a\u2028b\x0bc\n", ["a\u2028b\x0bc"]),
    ],
)
def test_lines(content: str, lines: list[str]) -> None:
    assert text_lines(content.encode(), "x") == lines


@pytest.mark.parametrize("where", ["in.en.gz", "in.en", "standard input"])
def test_packed_lines(where: str) -> None:
    packed = gzip.compress("\ufeffä\r\n".encode()) + gzip.compress(b"b\n\n", mtime=0)
    assert text_lines(packed, where) == ["ä", "b", ""]


@pytest.mark.parametrize(
    ("content", "where", "message"),
    [
        (gzip.compress(b"a\nb\n", mtime=0)[:-3], "in.en.gz", r"in\.en\.gz: corrupt gzip file: "),
        (gzip.compress(b"a\n", mtime=0) + b"x", "in.en.gz", r"in\.en\.gz: corrupt gzip file: "),
        (b"plain\n", "in.en.gz", r"in\.en\.gz: corrupt gzip file: "),
        (gzip.compress(b"a\n\xff\n", mtime=0), "in.gz", r"in\.gz: line 2 is not UTF-8"),
        (b"a\nb\n\xff\n", "in.en", r"in\.en: line 3 is not UTF-8"),
    ],
)
def test_lines_that_cannot_be_read(content: bytes, where: str, message: str) -> None:
    with pytest.raises(T2TError, match=f"^{message}"):
        text_lines(content, where)


def test_an_output_that_is_an_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").write_text("text")
    (tmp_path / "other").write_text("text")
    (tmp_path / "symbolic").symlink_to("in")
    (tmp_path / "hard").hardlink_to(tmp_path / "in")
    monkeypatch.chdir(tmp_path)
    for same in ("in", "./in", "symbolic", "hard", tmp_path / ".." / tmp_path.name / "in"):
        with pytest.raises(T2TError, match="--to would overwrite --from: they are the same file"):
            check_apart({"--from": Path("in")}, {"--to": Path(same)})
    with Path("in").open() as file, pytest.raises(T2TError, match="--to would overwrite standard input"):
        check_apart({"standard input": file.fileno()}, {"--to": Path("in")})
    check_apart({"--from": Path("in")}, {"--to": Path("other"), "--and": Path("missing")})
    check_apart({"--from": Path("/dev/null")}, {"--to": Path("/dev/null")})


def test_only_one_at_a_time(tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path, "busy"),
        pytest.raises(T2TError, match="busy"),
        exclusive_lock(tmp_path, "busy"),
    ):
        pytest.fail("a second one came in")
    with exclusive_lock(tmp_path, "busy"):
        pass


def test_a_lock_without_a_refusal_is_waited_for(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with exclusive_lock(tmp_path, None):
            order.append("second")

    waiting = threading.Thread(target=second)
    with exclusive_lock(tmp_path, "in use"):
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_folder_that_takes_no_files_is_noticed(tmp_path: Path) -> None:
    check_writable(tmp_path)
    check_writable(tmp_path / "to be" / "made")
    assert not [*tmp_path.iterdir()]
    (tmp_path / "file").touch()
    with pytest.raises(T2TError, match=r"cannot write .*/file/none: Not a directory; mend the folder's"):
        check_writable(tmp_path / "file" / "none")


@pytest.mark.parametrize("name", ["a*", "a?", "a]", "a[", "a[/b]", "a b ", "a,b", "~a", "a{b}", "ä"])
def test_paths_that_it_takes_as_they_are(name: str) -> None:
    check_for_tensorflow(Path("/models", name), "rename it")


def test_paths() -> None:
    assert path_of("a:b//c", "x") == path_of(Path("a:b/c"), "x") == Path("a:b/c")
    assert path_of("~/a", "x") == Path.home() / "a"
    for value in (None, 5, "", ["a"]):
        with pytest.raises(T2TError, match=r"^x=.*: give a string or a Path$"):
            path_of(value, "x")


@pytest.mark.slow
def test_tensorboard_reads_the_events(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for step, score in ((100, 12.5), (200, 25.0)):
        events = ScoreEvents(tmp_path / "events")
        events.add(step, 1e9 + step, {"BLEU_cased": score, "BLEU_uncased": 2 * score})
        events.close()
    found = EventAccumulator(str(tmp_path / "events")).Reload()
    for tag, factor in (("BLEU_cased", 1), ("BLEU_uncased", 2)):
        points = [(event.wall_time, event.step, event.value) for event in found.Scalars(tag)]
        assert points == [(1e9 + 100, 100, 12.5 * factor), (1e9 + 200, 200, 25.0 * factor)]


def test_several_writers_of_one_file_wait_for_each_other(tmp_path):
    file, texts = tmp_path / "file", [f"{number}" * 100_000 for number in range(8)]

    def write(text):
        with atomic_write(file) as opened:
            for part in (text[:50_000], text[50_000:]):
                opened.write(part.encode())
                opened.flush()
                time.sleep(0.01)

    threads = [threading.Thread(target=write, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_text() in texts
    assert list(tmp_path.iterdir()) == [file]


def test_a_lock_on_a_folder_that_is_removed_meanwhile(tmp_path):
    folder, events = tmp_path / "new" / "folder", []

    def second():
        with exclusive_lock(folder, None, lambda: events.append("waits")):
            events.append(folder.is_dir())

    with exclusive_lock(folder, None):
        thread = threading.Thread(target=second)
        thread.start()
        while not events:
            time.sleep(0.001)
        folder.rmdir()
        folder.parent.rmdir()
    thread.join()
    assert events == ["waits", True]


def test_a_path_that_is_not_utf8_is_refused_where_a_library_cannot_take_it(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for check in (check_for_tensorflow, lambda path, remedy: check_utf8(path, "TensorFlow", remedy)):
        check(tmp_path / "caf\u00e9", "rename it")
        with pytest.raises(T2TError, match=r"TensorFlow takes no path that is not UTF-8: rename it$"):
            check(folder / "export", "rename it")
    with atomic_write(folder / "file") as file:
        file.write(b"a")
    assert file_lines(folder / "file") == ["a"]
