"""Imported checkpoints of T2T give the same logits here, whatever their names, shards and shapes."""

import json

import numpy as np
import pytest

from t2t_revival import HParams, T2TError, Translator, registry
from t2t_revival.addons.imports.t2t import ImportSource, import_checkpoint, nearest_set
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.model_folder import Run
from tests.support.t2t_model import POST_NORM, QUERY, SEPARATE, imported, logits, stored_variables, write

SOURCE = np.array([[5, 9, 3, 1, 0], [7, 2, 2, 8, 1]])
TARGETS = np.array([[4, 6, 1, 0, 0, 0], [2, 3, 10, 4, 11, 1]])


@pytest.mark.slow
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


def test_logits_of_relative_positions_are_those_of_t2t_itself(tmp_path, reference_dir):
    known = dict(np.load(reference_dir / "relative.npz"))
    settings, arrays = json.loads(str(known["hparams"])), stored_variables(known)
    write(tmp_path / "t2t", settings, arrays, str(known["vocabulary"]).encode())
    imported(tmp_path)
    hparams, run = HParams.load(tmp_path / "out"), Run.load(tmp_path / "out")
    assert (hparams.pos, hparams.max_relative_position) == ("relative", 3)
    assert run.hparams_set == "transformer_relative"
    found = Translator.load(tmp_path / "out").model({"inputs": known["inputs"], "targets": known["targets"]})
    mask = known["targets"] != 0
    np.testing.assert_allclose(np.asarray(found)[mask], known["logits"][mask], rtol=0, atol=1e-5)
    write(tmp_path / "t2t", {**settings, "max_relative_position": 4}, arrays, None)
    with pytest.raises(T2TError, match=r"relative_positions_keys/embeddings have the shape \(7, 4\)"):
        import_checkpoint(ImportSource(tmp_path / "t2t"), tmp_path / "other")


def test_a_target_space_of_ones_own(t2t, tmp_path):
    settings, arrays = t2t()
    imported(tmp_path, target_space=15)
    found = np.asarray(
        Translator.load(tmp_path / "out").model({"inputs": SOURCE[1:], "targets": TARGETS[1:]})
    )
    np.testing.assert_allclose(found[0], logits(arrays, settings, SOURCE[1], TARGETS[1], 15), atol=1e-4)


@pytest.mark.parametrize("named", ["/of/another/machine/model.ckpt-7", "model.ckpt-7"])
@pytest.mark.parametrize("source", ["", "model.ckpt-7", "model.ckpt-7.index"])
def test_a_folder_that_was_copied_from_elsewhere_or_a_prefix_is_read(t2t, tmp_path, named, source):
    t2t()
    (tmp_path / "t2t" / "checkpoint").write_text(f'model_checkpoint_path: "{named}"\n')
    assert import_checkpoint(ImportSource(tmp_path / "t2t" / source), tmp_path / "out").step == 7


def test_files_in_output_dir(t2t, tmp_path, subwords_file):
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
    assert hparams == result.folder.hparams
    assert (hparams.pos, hparams.pre_norm, hparams.max_length) == ("timing", True, 20)
    assert (hparams.learning_rate_constant, hparams.optimizer_adam_beta2) == (0.5, 0.997)
    (checkpoint,) = checkpoints.list_checkpoints(tmp_path / "out")
    arrays, meta = checkpoints.load(checkpoint.path)
    assert meta["step"] == 7
    assert not any(name.startswith(checkpoints.OPTIMIZER) for name in arrays)  # which are 0 then


def test_a_padded_vocabulary_has_the_ids_of_the_one_that_was_padded(t2t, tmp_path, subwords_file):
    t2t({"vocab_divisor": 32})
    imported(tmp_path)
    vocabulary, before = Translator.load(tmp_path / "out").vocabulary, SubwordVocabulary(subwords_file)
    assert vocabulary.size % 32 == 0
    assert vocabulary.encode("the dogs ö") == before.encode("the dogs ö")


def test_optimizer_and_counters_are_left_out(t2t, tmp_path):
    """Leaves out the variables of T2T's `create_dummy_vars`, optimizers and scaled losses."""
    more = {f"training/{QUERY}/Adam": (8, 8), f"{QUERY}/Adam_1": (8, 8), "training/beta1_power": ()}
    more |= {"losses_avg/problem_0/total_loss": (), "train_stats/problem_0_steps": (), "loss_scale": ()}
    t2t(**more, global_step=())
    assert imported(tmp_path).step == 0  # as the variable says, and not the file's name


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
    run = imported(tmp_path).folder.run
    assert (run.problem, run.hparams_set) == ("translate_enfr", "transformer_big")
    assert HParams.load(tmp_path / "out").train_steps == 250_000


COSINE = "constant * cosdecay"
LEGACY, WARMUP = "constant*legacy", "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"


@pytest.mark.parametrize(
    ("changes", "schedule", "constant", "notes"),
    [
        ({"learning_rate_schedule": "legacy"}, LEGACY, 2.0, 0),
        ({"learning_rate_schedule": "legacy", "learning_rate": 0.1}, LEGACY, 1.0, 0),
        ({"learning_rate_schedule": "constant*a_factor_of_their_own"}, WARMUP, 2.0, 1),
        ({"learning_rate_schedule": COSINE, "learning_rate_decay_steps": 700}, COSINE, 2.0, 0),
        ({"optimizer": "adafactor", "batch_size": 16}, WARMUP, 2.0, 2),
    ],
)
def test_settings_of_the_training(t2t, tmp_path, changes, schedule, constant, notes):
    t2t(changes)
    result = imported(tmp_path)
    assert result.folder.hparams.learning_rate_schedule == schedule
    assert result.folder.hparams.learning_rate_constant == constant
    assert len(result.notes) == notes


def test_flags_among_the_hparams_are_ignored(t2t, tmp_path):
    """Ignores flags, which T2T's `trainer_lib.create_experiment` puts among the hparams."""
    flags = {"eval_freq_in_steps": 1000, "eval_steps": 100, "eval_timeout_mins": 240, "train_steps": 300_000}
    flags |= {"data_dir": "data", "model_dir": "out", "schedule": "continuous_train_and_eval"}
    t2t({**flags, "std_server_protocol": "grpc", "warm_start_from": None})
    result = imported(tmp_path)
    assert (result.folder.hparams.train_steps, result.notes) == (300_000, [])
    assert result.folder.hparams.average_checkpoints == 8, "as T2T's sets here"


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
    assert (result.folder.run.problem, result.folder.run.hparams_set) == (
        "translate_ende",
        "transformer_base_v2",
    )
    h = result.folder.hparams
    assert (h.learning_rate_schedule, h.learning_rate_constant) == ("constant*legacy", 2.0)
    found = Translator.load(tmp_path / "out").model({"inputs": SOURCE[1:], "targets": TARGETS[1:]})
    expected = logits(arrays, settings, SOURCE[1], TARGETS[1])
    np.testing.assert_allclose(np.asarray(found)[0], expected, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"input_modalities": "inputs:symbol:ctc"},
        {"target_modality": "symbol:ctc"},
        {"symbol_modality_skip_top": True},
    ],
)
def test_a_modality_of_an_older_version_that_makes_another_model(t2t, tmp_path, changes):
    t2t({**OLD, **changes})
    ((name, value),) = changes.items()
    with pytest.raises(T2TError, match=f"{name}={value!r}: not supported"):
        imported(tmp_path)


def as_imported(name, **changes):
    """Returns the hparams of an import of T2T's set that was trained with changes."""
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


def test_a_reversed_problem_has_the_vocabulary_of_its_problem(t2t, tmp_path, subwords_file):
    t2t()
    (tmp_path / "t2t" / "vocab.other.64.subwords").touch()
    (tmp_path / "t2t" / "flags.txt").write_text("--problem=translate_ende_toy_rev\n")
    run = imported(tmp_path).folder.run
    assert (run.problem, run.vocabulary) == ("translate_ende_rev", subwords_file.name)


def test_several_vocabularies_need_a_choice(t2t, tmp_path, subwords_file):
    t2t()
    (tmp_path / "t2t" / "vocab.other.64.subwords").touch()
    with pytest.raises(T2TError, match="several vocabularies"):
        imported(tmp_path)
    assert imported(tmp_path, vocab_files=[subwords_file]).folder.run.vocabulary == subwords_file.name
