"""Imports that fail: another model, missing or corrupt files, names that do not fit, an output_dir in use."""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import T2TError
from t2t_revival.addons.imports.t2t import ImportSource, import_checkpoint
from tests.support.t2t_model import POST_NORM, SEPARATE, imported, write


@pytest.mark.parametrize("named", ["../elsewhere/model.ckpt-7", "{}/elsewhere/model.ckpt-7", "..", ""])
def test_a_checkpoint_outside_of_the_folder_is_not_read(t2t, tmp_path, named):
    t2t()
    state, elsewhere = tmp_path / "t2t" / "checkpoint", tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (tmp_path / "t2t").glob("model.ckpt-7.*"):
        path.rename(elsewhere / path.name)
    state.write_text(f'model_checkpoint_path: "{named.format(tmp_path)}"\n')
    with pytest.raises(T2TError, match=f"no tensor2tensor checkpoint in {tmp_path / 't2t'}: "):
        imported(tmp_path)


def test_a_vocabulary_whose_copy_could_not_be_named_is_refused_before_anything_is_written(t2t, tmp_path):
    t2t()
    vocabulary = tmp_path / "t2t" / "vocab.translate_ende_toy.64.subwords"
    strange = vocabulary.rename(vocabulary.with_name('vocab."x".subwords'))
    with pytest.raises(T2TError, match=r"a copy cannot have the name .*: rename the file"):
        imported(tmp_path, vocab_files=[strange], problem="translate_ende")
    assert not (tmp_path / "out").exists()


def test_settings_that_make_another_model_are_all_named(t2t, tmp_path):
    """Rejects settings of this project too that T2T does not have."""
    t2t(
        {
            "ffn_layer": "conv_relu_conv",
            "proximity_bias": True,
            "my_gate": 3,
            "freeze": "encoder",
            "pos": "rotary",
        }
    )
    named = r"ffn_layer='conv_relu_conv', freeze='encoder', my_gate=3, pos='rotary', proximity_bias=True: not"
    with pytest.raises(T2TError, match=named):
        imported(tmp_path)
    t2t({"my_gate": 3})
    assert imported(tmp_path, ignored_hparams=("my_gate",)).step == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 3}, "it has no transformer/body/decoder/layer_2/encdec_attention/"),
        ({"num_hidden_layers": 1}, "unknown variable transformer/body/decoder/layer_1/encdec_attention/"),
        ({"hidden_size": 16}, r"weights_0 and .* have the shape \(\d+, 8\)"),
        (POST_NORM, "it has no .*/layer_postprocess/layer_norm/"),
        (SEPARATE, "it has no transformer/symbol_modality_.*/softmax/weights_0"),
        ({"use_target_space_embedding": False}, "unknown variable .*target_space_embedding/kernel"),
        ({"layer_preprocess_sequence": "dn"}, "hparams.json: .*layer_preprocess_sequence"),
        ({"num_heads": "2"}, "hparams.json: hparams: num_heads='2' is not of type int"),
        ({"pos": None}, "pos=None with self_attention_type='dot_product': not supported"),
        ({"self_attention_type": "dot_product_relative"}, "pos='timing' with self_attention_type="),
        ({"self_attention_type": "dot_product_relative_v2"}, "self_attention_type='dot_product_relative_v2'"),
    ],
)
def test_hparams_of_another_model(t2t, tmp_path, changes, message):
    settings, _ = t2t()
    (tmp_path / "t2t" / "hparams.json").write_text(json.dumps({**settings, **changes}))
    with pytest.raises(T2TError, match=message):
        imported(tmp_path)
    assert not (tmp_path / "out").exists()


def rewritten(tmp_path, settings, arrays):
    for path in (tmp_path / "t2t").glob("model.ckpt*"):
        path.unlink()
    write(tmp_path / "t2t", settings, arrays, None)


def test_variables_of_another_model(t2t, tmp_path):
    settings, arrays = t2t()
    rewritten(tmp_path, settings, {"lstm_seq2seq/body/kernel": np.zeros(3, np.float32)})
    with pytest.raises(T2TError, match=r"not a checkpoint of .* it has lstm_seq2seq/body/kernel"):
        imported(tmp_path)
    shard = next(name for name in arrays if name.endswith("weights_1"))
    rewritten(tmp_path, settings, {name: array for name, array in arrays.items() if name != shard})
    with pytest.raises(T2TError, match=f"it has no {shard}"):
        imported(tmp_path)
    other = next(iter(arrays)).replace("symbol_modality_", "symbol_modality_9")
    rewritten(tmp_path, settings, {**arrays, other: np.zeros((3, 8), np.float32)})
    with pytest.raises(T2TError, match="separate vocabularies"):
        imported(tmp_path)


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("checkpoint", "no tensor2tensor checkpoint in .*t2t"),
        ("hparams.json", r"hparams\.json is missing: copy it"),
        ("vocab.translate_ende_toy.64.subwords", "no vocabulary vocab.* give --vocab_file"),
        ("model.ckpt-7.data-00000-of-00001", r"model\.ckpt-7: corrupt checkpoint"),
    ],
)
def test_a_missing_file(t2t, tmp_path, lost, message):
    t2t()
    (tmp_path / "t2t" / lost).unlink()
    with pytest.raises(T2TError, match=message):
        imported(tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_vocabulary_of_another_model(t2t, tmp_path):
    t2t()
    vocabulary = tmp_path / "t2t" / "vocab.translate_ende_toy.64.subwords"
    vocabulary.write_bytes(vocabulary.read_bytes() + b"'the dogs_'\n")
    with pytest.raises(T2TError, match=r"64\.subwords: \d+ subtokens, .* the vocabulary of another model"):
        imported(tmp_path)


@pytest.mark.parametrize(
    ("flags", "changes", "message"),
    [
        ("--problem=translate_encs_wmt32k\n", {}, "T2T's problem translate_encs_wmt32k.* give --problem"),
        ("--model=universal_transformer\n", {}, "--model=universal_transformer: only `transformer`"),
        ("", {"problem": "translate_ened"}, "did you mean translate_ende"),
        ("", {"hparams_set": "bsae"}, "did you mean base"),
        ("", {"target_space": 32}, r"--target_space_id=32: .* rows 0 to 31"),
    ],
)
def test_names_that_do_not_fit(t2t, tmp_path, flags, changes, message):
    t2t()
    (tmp_path / "t2t" / "flags.txt").write_text(flags)
    with pytest.raises(T2TError, match=message):
        imported(tmp_path, **changes)
    assert not (tmp_path / "out").exists()


def test_an_output_dir_in_use(t2t, tmp_path):
    t2t()
    imported(tmp_path)
    with pytest.raises(T2TError, match=r"--output_dir=.*out is in use: it holds run\.json"):
        imported(tmp_path)
    with pytest.raises(T2TError, match=r"in use: it holds hparams\.json"):
        import_checkpoint(ImportSource(tmp_path / "t2t"), tmp_path / "t2t")
    assert tf.train.latest_checkpoint(str(tmp_path / "t2t"))
