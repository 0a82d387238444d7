"""The built-in corpus: its bytes, its reader, and the tool that wrote it.

The bytes are those whose grammar, trees, alignments and held-out pairs were checked when they were written.
"""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from t2t_revival.sample_corpus import CORPUS, lines

ROOT = Path(__file__).parents[2]
SIZES = {"train": 20000, "dev": 500, "test": 500}
FILES = ("en", "de", "fr", "trees", "en-de.align", "en-fr.align", "de-fr.align")  # a sentence a line
CHECKSUMS = {  # CRC-32 of each
    "train": [*(2590627028, 314020911, 873679573, 2265387330), *(2834355729, 1148017641, 473757492)],
    "dev": [*(4117430703, 2274009310, 2436087281, 143488352), *(177233389, 3361690188, 1852415429)],
    "test": [*(2932538385, 2243824793, 3827548114, 1069457617), *(3057450944, 2373953759, 1236820474)],
}


def test_the_bytes_of_the_corpus():
    """Every sentence is as it was, so that figures that were measured with the corpus hold."""
    with ZipFile(CORPUS) as corpus:
        found = {file.filename: file.CRC for file in corpus.infolist()}
    names = [f"{split}.{file}" for split in SIZES for file in FILES]
    assert found == dict(zip(names, [number for split in SIZES for number in CHECKSUMS[split]], strict=True))


@pytest.mark.parametrize(("split", "size"), SIZES.items())
def test_each_file_has_a_line_for_each_sentence(split, size):
    assert {len(lines(f"{split}.{file}")) for file in FILES} == {size}


@pytest.mark.slow
@pytest.mark.nightly
def test_the_tool_writes_these_bytes(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "tools.sample_corpus", tmp_path / "again.zip"], cwd=ROOT, check=True
    )
    assert (tmp_path / "again.zip").read_bytes() == CORPUS.read_bytes()
