"""What T2T left gives the same logits here, whatever its names, shards and shapes; all else is an error."""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import registry
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.t2t_import.importer import ImportSource, import_checkpoint, nearest_set
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.run import Run
from tests.support.t2t_model import POST_NORM, SETTINGS, logits, variables, write

SEPARATE = {"shared_embedding_and_softmax_weights": False}
SOURCE = np.array([[5, 9, 3, 1, 0], [7, 2, 2, 8, 1]])
TARGETS = np.array([[4, 6, 1, 0, 0, 0], [2, 3, 10, 4, 11, 1]])
QUERY = "transformer/body/encoder/layer_0/self_attention/multihead_attention/q/kernel"


@pytest.fixture(scope="module")
def vocab_size(subwords_file):
    return SubwordVocabulary(subwords_file).size


@pytest.fixture
def t2t(tmp_path, subwords_file, vocab_size):
    """Writes an output_dir of T2T's and returns its settings and variables: (changes, more variables)."""

    def make(changes=(), **more):
        settings = {**SETTINGS, **dict(changes)}
        arrays = variables(settings, vocab_size)
        extra = {name: np.zeros(shape, np.float32) for name, shape in more.items()}
        write(tmp_path / "t2t", settings, {**arrays, **extra}, subwords_file.read_bytes())
        return settings, arrays

    return make


def imported(tmp_path, **changes):
    return import_checkpoint(ImportSource(tmp_path / "t2t", **changes), tmp_path / "out")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        POST_NORM,
        {"symbol_modality_num_shards": 1, "use_target_space_embedding": False},
        {**SEPARATE, **POST_NORM, "symbol_modality_num_shards": 16},
        {**SEPARATE, "shared_embedding": True},
        {"pos": "emb", "vocab_divisor": 32},
    ],
)
def test_logits_are_those_of_the_same_variables_in_t2t(t2t, tmp_path, changes):
    settings, arrays = t2t(changes)
    imported(tmp_path)
    translator = Translator.load(tmp_path / "out")
    found = np.asarray(translator.model({"inputs": SOURCE, "targets": TARGETS}))
    expected = [logits(arrays, settings, *pair) for pair in zip(SOURCE, TARGETS, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert translator.translate(["the dogs", ""])[1] == ""


def test_a_target_space_of_ones_own(t2t, tmp_path):
    settings, arrays = t2t()
    imported(tmp_path, target_space=15)
    found = np.asarray(
        Translator.load(tmp_path / "out").model({"inputs": SOURCE[1:], "targets": TARGETS[1:]})
    )
    np.testing.assert_allclose(found[0], logits(arrays, settings, SOURCE[1], TARGETS[1], 15), atol=1e-4)


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


@pytest.mark.parametrize("named", ["/of/another/machine/model.ckpt-7", "model.ckpt-7"])
def test_a_folder_that_was_copied_from_elsewhere_is_read(t2t, tmp_path, named):
    t2t()
    (tmp_path / "t2t" / "checkpoint").write_text(f'model_checkpoint_path: "{named}"\n')
    assert imported(tmp_path).step == 7


def test_a_vocabulary_whose_copy_could_not_be_named_is_refused_before_anything_is_written(t2t, tmp_path):
    t2t()
    vocabulary = tmp_path / "t2t" / "vocab.translate_ende_toy.64.subwords"
    strange = vocabulary.rename(vocabulary.with_name('vocab."x".subwords'))
    with pytest.raises(T2TError, match=r"a copy cannot have the name .*: rename the file"):
        imported(tmp_path, vocab_file=strange, problem="translate_ende")
    assert not (tmp_path / "out").exists()


def test_what_is_left_in_output_dir(t2t, tmp_path, subwords_file):
    t2t({"learning_rate_constant": 0.5})
    result = imported(tmp_path)
    assert (result.step, result.notes) == (7, [])
    run = Run.load(tmp_path / "out")
    assert (run.problem, run.hparams_set, run.vocabulary) == (
        "translate_ende",
        "transformer_base",
        "vocab.translate_ende_toy.64.subwords",
    )
    assert run.decode_hparams == {"beam_size": 4, "alpha": 0.6, "extra_length": 100}
    assert (tmp_path / "out" / run.vocabulary).read_bytes() == subwords_file.read_bytes()
    hparams = HParams.load(tmp_path / "out")
    assert hparams == result.hparams
    assert (hparams.pos, hparams.pre_norm, hparams.max_length) == ("timing", True, 20)
    assert (hparams.learning_rate_constant, hparams.optimizer_adam_beta2) == (0.5, 0.997)
    (checkpoint,) = checkpoints.list_checkpoints(tmp_path / "out")
    arrays, meta = checkpoints.load(checkpoint.path)
    assert meta["step"] == 7
    moments = [array for name, array in arrays.items() if name.startswith(checkpoints.OPTIMIZER)]
    assert moments
    assert not any(array.any() for array in moments)


def test_a_padded_vocabulary_has_the_ids_of_the_one_that_was_padded(t2t, tmp_path, subwords_file):
    t2t({"vocab_divisor": 32})
    imported(tmp_path)
    vocabulary, before = Translator.load(tmp_path / "out").vocabulary, SubwordVocabulary(subwords_file)
    assert vocabulary.size % 32 == 0
    assert vocabulary.encode("the dogs ö") == before.encode("the dogs ö")


def test_optimizer_and_counters_are_left_out(t2t, tmp_path):
    """What T2T's `create_dummy_vars`, its optimizers and scaled losses add to a model in training."""
    more = {f"training/{QUERY}/Adam": (8, 8), f"{QUERY}/Adam_1": (8, 8), "training/beta1_power": ()}
    more |= {"losses_avg/problem_0/total_loss": (), "train_stats/problem_0_steps": (), "loss_scale": ()}
    t2t(**more, global_step=())
    assert imported(tmp_path).step == 0  # as the variable says, and not the file's name


@pytest.mark.parametrize("name", ["model.ckpt-7", "model.ckpt-7.index"])
def test_a_prefix_as_well_as_a_folder(t2t, tmp_path, name):
    t2t()
    source = ImportSource(tmp_path / "t2t" / name)
    assert import_checkpoint(source, tmp_path / "out").step == 7


def test_names_come_from_flags_txt(t2t, tmp_path, monkeypatch):
    t2t()
    data = tmp_path / "data"
    data.mkdir()
    vocabulary = tmp_path / "t2t" / "vocab.translate_ende_toy.64.subwords"
    vocabulary.rename(data / "vocab.translate_enfr_wmt8k.64.subwords")
    (data / "vocab.translate_encs_wmt8k.64.subwords").touch()
    (tmp_path / "t2t" / "flags.txt").write_text(
        f"--data_dir={data}\n--model=transformer\n--problem=translate_enfr_wmt8k\n--hparams_set=transformer_big\n"
        "--train_steps=250000\n--nogenerate_data\n"
    )
    run = imported(tmp_path).run
    assert (run.problem, run.hparams_set) == ("translate_enfr", "transformer_big")
    assert HParams.load(tmp_path / "out").train_steps == 250_000


@pytest.mark.parametrize(
    ("changes", "expected", "notes"),
    [
        ({"learning_rate_schedule": "legacy"}, ("constant*legacy", 2.0), 0),
        ({"learning_rate_schedule": "legacy", "learning_rate": 0.1}, ("constant*legacy", 1.0), 0),
        (
            {"learning_rate_schedule": "constant*a_factor_of_their_own"},
            ("constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size", 2.0),
            1,
        ),
        (
            {"learning_rate_schedule": "constant * cosdecay", "learning_rate_decay_steps": 700},
            ("constant * cosdecay", 2.0),
            0,
        ),
        (
            {"optimizer": "adafactor", "batch_size": 16},
            ("constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size", 2.0),
            2,
        ),
    ],
)
def test_settings_of_the_training(t2t, tmp_path, changes, expected, notes):
    t2t(changes)
    result = imported(tmp_path)
    assert (result.hparams.learning_rate_schedule, result.hparams.learning_rate_constant) == expected
    assert len(result.notes) == notes


def test_what_t2t_trainer_adds_to_hparams_json(t2t, tmp_path):
    """`trainer_lib.create_experiment` puts flags among the hparams."""
    flags = {"eval_freq_in_steps": 1000, "eval_steps": 100, "eval_timeout_mins": 240, "train_steps": 300_000}
    flags |= {"data_dir": "data", "model_dir": "out", "schedule": "continuous_train_and_eval"}
    t2t({**flags, "std_server_protocol": "grpc", "warm_start_from": None})
    result = imported(tmp_path)
    assert (result.hparams.train_steps, result.notes) == (300_000, [])
    assert result.hparams.average_checkpoints == 8, "as T2T's sets here"


def test_settings_that_make_another_model_are_all_named(t2t, tmp_path):
    """Ours too, where T2T has no such thing."""
    t2t({"ffn_layer": "conv_relu_conv", "proximity_bias": True, "my_gate": 3, "attention_window": 8})
    named = r"attention_window=8, ffn_layer='conv_relu_conv', my_gate=3, proximity_bias=True: not"
    with pytest.raises(T2TError, match=named):
        imported(tmp_path)
    t2t({"my_gate": 3})
    assert imported(tmp_path, ignored_hparams=("my_gate",)).step == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 3}, "it has no transformer/body/decoder/layer_2/encdec_attention/"),
        ({"num_hidden_layers": 1}, "unknown variable transformer/body/decoder/layer_1/encdec_attention/"),
        (
            {"hidden_size": 16},
            r"weights_0 and .* have the shape \(\d+, 8\), hparams\.json requires \(\d+, 16\)",
        ),
        (POST_NORM, "it has no .*/layer_postprocess/layer_norm/"),
        (SEPARATE, "it has no transformer/symbol_modality_.*/softmax/weights_0"),
        ({"use_target_space_embedding": False}, "unknown variable .*target_space_embedding/kernel"),
        ({"layer_preprocess_sequence": "dn"}, "hparams.json: .*layer_preprocess_sequence"),
        ({"num_heads": "2"}, "hparams.json: num_heads='2' is not of type int"),
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
    rewritten(tmp_path, settings, {**arrays, QUERY: np.zeros((9, 8), np.float32)})
    with pytest.raises(T2TError, match=f"shapes of {QUERY} and .* do not match"):
        imported(tmp_path)
    other = next(iter(arrays)).replace("symbol_modality_", "symbol_modality_9")
    rewritten(tmp_path, settings, {**arrays, other: np.zeros((3, 8), np.float32)})
    with pytest.raises(T2TError, match="separate vocabularies"):
        imported(tmp_path)


# hparams.json of tensor2tensor's own test_data/transformer_test_ckpt, where it differs from later versions'.
OLD = {
    "batch_size": 4096,
    "hidden_size": 16,
    "filter_size": 8,
    "max_length": 256,
    "symbol_modality_num_shards": 16,
    "optimizer_adam_beta2": 0.98,
    "learning_rate_decay_scheme": "noam",
    "input_modalities": "default",
    "target_modality": "default",
    "symbol_modality_skip_top": False,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "moe_num_experts": 64,
    "summarize_grads": False,
    "eval_drop_long_sequences": False,
}
NEWER = ("learning_rate_schedule", "learning_rate_constant", "use_target_space_embedding", "vocab_divisor")


def test_a_checkpoint_of_an_older_version(t2t, tmp_path):
    settings, arrays = t2t(OLD)
    older = {name: value for name, value in settings.items() if name not in NEWER}
    (tmp_path / "t2t" / "hparams.json").write_text(json.dumps(older))
    (tmp_path / "t2t" / "flags.txt").write_text(
        "--problems=translate_ende_wmt8k\n--hparams_set=transformer_test\n--model=transformer\n--sync=False\n"
    )
    result = imported(tmp_path)
    assert (result.run.problem, result.run.hparams_set) == ("translate_ende", "transformer_base_v2")
    h = result.hparams
    assert (h.learning_rate_schedule, h.learning_rate_constant) == ("constant*legacy", 2.0)
    found = Translator.load(tmp_path / "out").model({"inputs": SOURCE[1:], "targets": TARGETS[1:]})
    expected = logits(arrays, settings, SOURCE[1], TARGETS[1])
    np.testing.assert_allclose(np.asarray(found)[0], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_modalities", "inputs:symbol:ctc"),
        ("target_modality", "symbol:ctc"),
        ("symbol_modality_skip_top", True),
    ],
)
def test_a_modality_of_an_older_version_that_makes_another_model(t2t, tmp_path, name, value):
    t2t({**OLD, name: value})
    with pytest.raises(T2TError, match=f"{name}={value!r}: not supported"):
        imported(tmp_path)


def as_imported(name, **changes):
    """What an import makes of a set of T2T's that was trained with changes."""
    return registry.hparams(name).replace(effective_batch_size=0, train_steps=7, **changes)


@pytest.mark.parametrize(
    ("hparams", "theirs", "expected"),
    [
        (as_imported("transformer_base"), "", "transformer_base"),
        (as_imported("transformer_base_v1"), "", "transformer_base_v1"),
        (as_imported("transformer_base_v2"), "", "transformer_base_v2"),
        (as_imported("transformer_big"), "my_big", "transformer_big"),
        (as_imported("transformer_big_single_gpu", batch_size=1500), "", "transformer_big_single_gpu"),
        (as_imported("transformer_tiny", attention_dropout=0.2), "", "transformer_tiny"),
        (as_imported("transformer_base", hidden_size=64), "transformer_base", "transformer_base"),
        (as_imported("transformer_base", hidden_size=64), "", "transformer_base"),
        (as_imported("transformer_base_v1", hidden_size=64), "", "transformer_base_v1"),
        (as_imported("transformer_base_v1"), "transformer_base", "transformer_base_v1"),
    ],
)
def test_an_imported_model_is_named_by_what_it_is(hparams, theirs, expected):
    assert nearest_set(hparams, theirs) == expected


def test_a_problem_in_the_other_direction(t2t, tmp_path, monkeypatch):
    from t2t_revival.problems import translate_ende

    class TranslateEnxxRev(translate_ende.TranslateEnde):
        pass

    monkeypatch.setitem(registry._PROBLEMS, "translate_enxx", translate_ende.TranslateEnde)
    monkeypatch.setitem(registry._PROBLEMS, "translate_enxx_rev", TranslateEnxxRev)
    t2t()
    (tmp_path / "t2t" / "flags.txt").write_text("--problem=translate_enxx_wmt32k_rev\n")
    assert imported(tmp_path).run.problem == "translate_enxx_rev"


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


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(T2TError, match=r"no tensor2tensor checkpoint .*model\.ckpt-9"):
        import_checkpoint(ImportSource(tmp_path / "model.ckpt-9"), tmp_path / "out")


def test_files_that_are_no_checkpoint(t2t, tmp_path):
    t2t()
    (tmp_path / "t2t" / "model.ckpt-7.index").write_bytes(b"no checkpoint")
    with pytest.raises(T2TError, match=r"model\.ckpt-7: corrupt checkpoint"):
        imported(tmp_path)


def test_the_vocabulary_of_another_model(t2t, tmp_path):
    t2t()
    vocabulary = tmp_path / "t2t" / "vocab.translate_ende_toy.64.subwords"
    vocabulary.write_bytes(vocabulary.read_bytes() + b"'the dogs_'\n")
    with pytest.raises(T2TError, match=r"64\.subwords: \d+ subtokens, .* the vocabulary of another model"):
        imported(tmp_path)


def test_a_reversed_problem_has_the_vocabulary_of_its_problem(t2t, tmp_path, subwords_file):
    t2t()
    (tmp_path / "t2t" / "vocab.other.64.subwords").touch()
    (tmp_path / "t2t" / "flags.txt").write_text("--problem=translate_ende_toy_rev\n")
    run = imported(tmp_path).run
    assert (run.problem, run.vocabulary) == ("translate_ende_rev", subwords_file.name)


def test_which_vocabulary_is_meant(t2t, tmp_path, subwords_file):
    t2t()
    (tmp_path / "t2t" / "vocab.other.64.subwords").touch()
    with pytest.raises(T2TError, match="several vocabularies"):
        imported(tmp_path)
    assert imported(tmp_path, vocab_file=subwords_file).run.vocabulary == subwords_file.name


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
