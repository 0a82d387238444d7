"""One vocabulary for both sides, or two."""

from pathlib import Path

import pytest

from t2t_revival.data.vocabulary import Vocabularies, copy_name, open_vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary


def test_one_file_is_the_vocabulary_of_both_sides(vocabulary_file: Path) -> None:
    shared = Vocabularies.open([vocabulary_file])
    assert shared.inputs is shared.targets
    assert not shared.separate
    assert shared.target_size is None
    assert shared.all == [shared.inputs]
    assert shared.fingerprint == shared.inputs.fingerprint
    splits = shared.splits()
    assert splits[0] is splits[1]


def test_two_files_are_two_vocabularies_of_any_kind(vocabulary_file: Path, subwords_file: Path) -> None:
    both = Vocabularies.open([vocabulary_file, subwords_file])
    assert both.separate
    assert [type(each).__name__ for each in both] == ["Vocabulary", "SubwordVocabulary"]
    assert both.target_size == both.targets.size != both.inputs.size
    assert both.fingerprint == both.inputs.fingerprint + both.targets.fingerprint
    assert [len(splits.steps) for splits in both.splits()] == [both.inputs.size, both.targets.size]


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("vocab.translate_enzh_wmt8k.8192.subwords.zh", "vocab.translate_enzh_wmt8k.8192.zh.subwords"),
        ("vocab.translate_ende_wmt8k.8192.subwords", "vocab.translate_ende_wmt8k.8192.subwords"),
        ("vocab.translate_enzh.zh.300.spm", "vocab.translate_enzh.zh.300.spm"),
    ],
)
def test_the_copy_of_t2ts_file_of_a_language_ends_as_all_of_its_files(name: str, copy: str) -> None:
    assert copy_name(Path("somewhere", name)) == copy
    assert copy_name(Path(copy)) == copy


def test_t2ts_file_of_a_language_is_opened_as_t2ts(tmp_path: Path, subwords_file: Path) -> None:
    path = tmp_path / "vocab.translate_enzh_wmt8k.8192.subwords.zh"
    path.write_bytes(subwords_file.read_bytes())
    assert isinstance(open_vocabulary(path), SubwordVocabulary)
