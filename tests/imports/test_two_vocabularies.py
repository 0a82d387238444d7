"""T2T's problems with two vocabularies: `translate_enzh_wmt8k`, as T2T 1.15.7 itself computes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import HParams, T2TError, Translator
from t2t_revival.addons.imports.t2t_folder import import_command
from t2t_revival.model_folder import Run
from tests.support.t2t_model import imported, logits, stored_variables, write

EN, ZH = (f"vocab.translate_enzh_wmt8k.8192.subwords.{language}" for language in ("en", "zh"))
PROBLEM = {"problem": "translate_enzh"}


@pytest.fixture
def known(reference_dir: Path) -> dict[str, np.ndarray]:
    return dict(np.load(reference_dir / "translate_enzh.npz"))


@pytest.fixture
def variables(known: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return stored_variables(known)


@pytest.fixture
def t2t(
    tmp_path: Path, known: dict[str, np.ndarray], variables: dict[str, np.ndarray]
) -> Callable[..., Path]:
    """Writes T2T's output_dir: with changed settings, or other variables."""

    def make(arrays: dict[str, np.ndarray] | None = None, **changes: object) -> Path:
        folder = tmp_path / "t2t"
        settings = {**json.loads(str(known["hparams"])), **changes}
        write(folder, settings, arrays or variables, None)
        for name, language in ((EN, "en"), (ZH, "zh")):
            (folder / name).write_text(str(known[f"vocab.{language}"]), encoding="utf-8")
        return folder

    return make


def test_ids_and_logits_are_t2ts(t2t: Callable, tmp_path: Path, known: dict[str, np.ndarray]) -> None:
    t2t()
    result = imported(tmp_path, **PROBLEM)
    run = Run.load(tmp_path / "out")
    assert result.folder.run == run
    assert run.vocabulary == "vocab.translate_enzh_wmt8k.8192.en.subwords"
    assert run.target_vocabulary == "vocab.translate_enzh_wmt8k.8192.zh.subwords"
    assert result.vocab_sizes == {run.vocabulary: 52, run.target_vocabulary: 34}
    hparams = HParams.load(tmp_path / "out")
    assert hparams is not None
    assert not hparams.shared_embedding_and_softmax_weights, "T2T unsets it where sizes differ"
    translator = Translator.load(tmp_path / "out", decode_hparams="extra_length=3")
    for source, target, inputs, targets in zip(
        *known["pairs"].T, known["inputs"], known["targets"], strict=True
    ):
        assert translator.encode(source) == inputs[inputs != 0].tolist()
        assert translator.encode(target, is_output=True) == targets[targets != 0].tolist()
    found = np.asarray(translator.model({"inputs": known["inputs"], "targets": known["targets"]}))
    mask = known["targets"] != 0
    np.testing.assert_allclose(found[mask], known["logits"][mask], atol=1e-4)
    (output,) = translator.translate(["the dogs"])
    assert not set(output) & set("abcdefghijklmnopqrstuvwxyz"), "pieces of the target's vocabulary only"


def test_vocabularies_of_equal_size_share_t2ts_table(
    t2t: Callable, tmp_path: Path, known: dict[str, np.ndarray], variables: dict[str, np.ndarray]
) -> None:
    """Takes T2T's one table for both, which it has where the padded sizes are equal."""
    names = [name for name in variables if "symbol_modality" in name]
    body = {name: array for name, array in variables.items() if name not in names}
    table = np.random.default_rng(1).normal(0, 0.4, (64, 8)).astype(np.float32)
    shards = {
        f"transformer/symbol_modality_64_8/shared/weights_{n}": part
        for n, part in enumerate(np.split(table, 16))
    }
    folder = t2t({**body, **shards}, vocab_divisor=64)
    imported(tmp_path, **PROBLEM)
    translator = Translator.load(tmp_path / "out")
    assert [vocabulary.size for vocabulary in translator.vocabularies] == [64, 64]
    model = translator.model
    np.testing.assert_array_equal(np.asarray(model.source_embedding.embeddings), table)
    np.testing.assert_array_equal(np.asarray(model.target_embedding.embeddings), table)
    found = np.asarray(model({"inputs": known["inputs"][:1], "targets": known["targets"][:1]}))
    settings = json.loads((folder / "hparams.json").read_text(encoding="utf-8"))
    expected = logits({**body, **shards}, settings, known["inputs"][0], known["targets"][0])
    np.testing.assert_allclose(found[0], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([ZH, EN], r"is of another model: it has no transformer/symbol_modality_34_8/input_emb/weights_0"),
        ([EN, EN], r"subwords\.en: give one file, or two with two names"),
        ([EN], r"inputs and targets have separate vocabularies .*: give --vocab_file=SOURCE,TARGET"),
    ],
)
def test_vocabularies_that_do_not_fit(t2t: Callable, tmp_path: Path, files: list[str], message: str) -> None:
    folder = t2t()
    with pytest.raises(T2TError, match=message):
        imported(tmp_path, **PROBLEM, vocab_files=[folder / name for name in files])
    assert not (tmp_path / "out").exists()


def test_of_a_reversed_problem_the_inputs_are_the_datas_targets(
    t2t: Callable, tmp_path: Path, variables: dict[str, np.ndarray]
) -> None:
    """Reads the model of T2T's `translate_enzh_wmt8k_rev`: its inputs have the size of `zh`."""
    body = {name: array for name, array in variables.items() if "symbol_modality" not in name}
    sizes = {"input_emb": 34, "target_emb": 52, "softmax": 52}
    tables = {
        f"transformer/symbol_modality_{rows}_8/{table}/weights_0": np.ones((rows, 8), np.float32)
        for table, rows in sizes.items()
    }
    t2t({**body, **tables})
    run = imported(tmp_path, problem="translate_ende_rev").folder.run
    assert run.vocabulary.endswith(".zh.subwords")
    assert [*run.vocabularies] == [run.target_vocabulary, run.vocabulary], "in the order of the data"


def test_several_files_of_one_problem_and_no_pair_are_an_error(t2t: Callable, tmp_path: Path) -> None:
    folder = t2t()
    (folder / ZH).rename(folder / ZH.replace("8192", "4096"))
    with pytest.raises(T2TError, match=r"holds several vocabularies .*: select one with --vocab_file"):
        imported(tmp_path, **PROBLEM)
    _, words = import_command(folder, "translate_ende", None)
    assert words[-1] == "--vocab_file=T2T_DATA_DIR/vocab.PROBLEM.SIZE.subwords"
