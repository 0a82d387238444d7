"""Lines of text files in order."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data.indexed_file import read_text
from t2t_revival.errors import T2TError


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"))))
def test_lines_are_those_that_were_written(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("text")
    for end in ("\n", "\r\n"):
        content = "".join(line + end for line in lines)
        (folder / "plain").write_bytes(f"\ufeff{content}".encode() if lines else b"")
        (folder / "packed.gz").write_bytes(gzip.compress(content.encode()))
        assert list(read_text(folder / "plain")) == list(read_text(folder / "packed.gz")) == lines


def test_faults_are_named(tmp_path):
    (tmp_path / "latin1.de").write_bytes("eins\nfünf\n".encode("latin-1"))
    with pytest.raises(T2TError, match=r"latin1\.de, line 2: not UTF-8 .*; convert the file"):
        list(read_text(tmp_path / "latin1.de"))
    (tmp_path / "half.gz").write_bytes(gzip.compress(b"one\n" * 999)[:-9])
    with pytest.raises(T2TError, match=r"half\.gz: corrupt gzip file: .*; put a valid copy back"):
        list(read_text(tmp_path / "half.gz"))
    (tmp_path / "plain.gz").write_bytes(b"one\n")
    with pytest.raises(T2TError, match=r"plain\.gz: corrupt gzip file"):
        list(read_text(tmp_path / "plain.gz"))
