"""Names that tensor2tensor registered are distinguished from misspelt ones, and explained."""

import json
from pathlib import Path

import pytest

from t2t_revival import registry, t2t_names
from t2t_revival.errors import T2TError

NAMES = json.loads((Path(__file__).parent / "reference" / "names.json").read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "translate_ende_wmt32k",
            "tensor2tensor's; here it is --problem=translate_ende --vocab_size=32768; WMT14",
        ),
        ("translate_ende_wmt_bpe32k", "tensor2tensor's; here it is --problem=translate_ende; before 1.15"),
        (
            "translate_enfr_wmt8k_packed_rev",
            "tensor2tensor's; here it is --problem=translate_enfr_rev --vocab_size=8192; not packed: ",
        ),
        (
            "translate_encs_wmt32k",
            "tensor2tensor's and needs a class of three lines in a package of yours, see "
            'examples/my_problem/README.md: class TranslateEncs(Text2TextProblem): source_lang = "en"; '
            'target_lang = "cs"; its text is a folder or a set of TFDS, as --data_source',
        ),
        (
            "translate_enro_wmt_multi_tiny64k_packed1k",
            "tensor2tensor's and is gone: several problems at once",
        ),
        ("librispeech_clean", "tensor2tensor's and out of scope: speech"),
        (
            "summarize_cnn_dailymail32k",
            "tensor2tensor's and out of scope; a task from text to text needs a problem",
        ),
        ("wsj_parsing", "tensor2tensor's; here it is --problem=parse_wsj; by --data_source, a Penn Treebank"),
    ],
)
def test_problems(name: str, expected: str) -> None:
    with pytest.raises(T2TError) as raised:
        registry.problem(name)
    assert str(raised.value).startswith(f"{name} is {expected}")


def test_each_problem_of_text_is_explained() -> None:
    names = NAMES["problems"].split()
    assert [name for name in names if not t2t_names.explain_problem(name)] == []
    assert {*map(t2t_names.problem_here, names)} <= {None, *registry.list_problems()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transformer_test", "; the nearest here is --hparams_set=tiny"),
        ("transformer_relative_big", " and is gone: other kinds of attention"),
        ("transformer_tpu_1b", " and is gone: TPUs, tuning"),
        ("transformer_cubbitt", "; the nearest here is --hparams_set=transformer_big_single_gpu: "),
    ],
)
def test_hparams_sets(name: str, expected: str) -> None:
    with pytest.raises(T2TError) as raised:
        registry.hparams(name)
    assert str(raised.value).startswith(f"{name} is tensor2tensor's{expected}")


@pytest.mark.parametrize("name", ["translate_ened", "my_problem", "my_problem_rev", "translate_ende_mine"])
def test_other_names_are_not_tensor2tensors(name: str) -> None:
    with pytest.raises(T2TError, match=f"unknown problem '{name}'"):
        registry.problem(name)
    with pytest.raises(T2TError, match="unknown hparams set 'my_tpu'"):
        registry.hparams("my_tpu")


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ("translate_ende_wmt32k", "translate_ende", True),
        ("translate_ende_wmt32k_packed", "translate_ende", True),
        ("translate_ende_wmt32k", "translate_enfr", False),
        ("translate_ende_wmt32k", "translate_ende_rev", False),
        ("translate_ende_wmt32k_rev", "translate_ende_rev", True),
        ("translate_ende_wmt32k_rev", "translate_ende", False),
        ("translate_encs_wmt32k", "translate_encs", True),
        ("translate_encs_wmt32k_rev", "translate_encs_rev", True),
        ("translate_encs_wmt32k_rev", "translate_encs", False),
        ("translate_encs_wmt32k", "translate_en", False),
        ("my_problem_wmt32k", "my_problem", False),
    ],
)
def test_what_a_model_is_of(theirs: str, ours: str, expected: bool) -> None:
    assert t2t_names.is_problem(theirs, ours) == expected
