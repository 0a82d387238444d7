"""Sets with T2T's names have T2T's values: each field of its sets is in exactly one of the groups below."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t2t_revival import registry
from t2t_revival.hparams import HParams
from t2t_revival.training.engines.engine import accumulation
from t2t_revival.training.optimizer import make_optimizer

# Ours has the same name and the same value.
SAME = """
    attention_dropout attention_key_channels attention_value_channels batch_size filter_size hidden_size
    label_smoothing layer_postprocess_sequence layer_prepostprocess_dropout layer_preprocess_sequence
    learning_rate_decay_rate learning_rate_decay_staircase learning_rate_decay_steps
    learning_rate_warmup_steps length_bucket_step max_length min_length_bucket norm_epsilon num_decoder_layers
    num_encoder_layers num_heads num_hidden_layers optimizer_adam_beta1 optimizer_adam_beta2
    optimizer_adam_epsilon pos relu_dropout shared_embedding_and_softmax_weights use_target_space_embedding
"""

# Together they are a product of factors, which ours is too; see `factors`.
RATE = ["learning_rate", "learning_rate_constant", "learning_rate_schedule"]

# Said by another field of ours: T2T's value, from that field. "adam" is LazyAdam, which differs from Adam for
# sparse gradients only, and T2T makes those of the embeddings dense.
EXPRESSED: dict[str, Callable[[HParams], Any]] = {
    "optimizer": lambda h: "multistep_adam" if accumulation(h, replicas=1) > 1 else "adam",
    "optimizer_multistep_accumulate_steps": lambda h: accumulation(h, 1) if accumulation(h, 1) > 1 else 0,
}

# What all its sets have and our code always does: the plain model, nothing added to gradients or loss,
# no example left out for being short, batches of unpacked examples by length.
ALWAYS: dict[str, Any] = {
    "activation_dtype": "float32",  # unless --precision says otherwise
    "attention_dropout_broadcast_dims": "",
    "attention_variables_3d": False,
    "bottom": {},
    "causal_decoder_self_attention": True,
    "clip_grad_norm": 0.0,
    "eval_drop_long_sequences": False,
    "ffn_layer": "dense_relu_dense",
    "gpu_automatic_mixed_precision": False,
    "grad_noise_scale": 0.0,
    "gumbel_noise_weight": 0.0,
    "hard_attention_k": 0,
    "initializer": "uniform_unit_scaling",  # with a gain of 1: Glorot's; tests/model/test_initialization.py
    "initializer_gain": 1.0,
    "layer_prepostprocess_dropout_broadcast_dims": "",
    "learning_rate_decay_scheme": "noam",  # what the factor "legacy" is
    "loss": {},
    "max_input_seq_length": 0,
    "max_target_seq_length": 0,
    "min_length": 0,
    "multiply_embedding_mode": "sqrt_depth",
    "name": {},
    "norm_type": "layer",
    "num_area_layers": 0,
    "optimizer_zero_grads": False,
    "pack_dataset": False,
    "pad_batch": False,
    "position_features": "",
    "prepend_mode": "none",
    "proximity_bias": False,
    "relu_dropout_broadcast_dims": "",
    "scheduled_sampling_prob": 0.0,
    "self_attention_type": "dot_product",
    "shared_embedding": False,
    "split_targets_chunk_length": 0,
    "split_to_length": 0,
    "symbol_dropout": 0.0,
    "top": {},
    "unidirectional_encoder": False,
    "use_fixed_batch_size": False,
    "vocab_divisor": 1,
    "warm_start_from_second": "",
    "weight_decay": 0.0,
    "weight_dtype": "float32",
    "weight_noise": 0.0,
    "weights_fn": {},
}

# Why T2T's value changes neither model nor loss nor schedule nor batches of its Transformer for text.
NO_INFLUENCE: dict[str, str] = {
    "read only with another self_attention_type": """add_relative_to_values heads_share_relative_embedding
        max_relative_position memory_height""",
    "read only with num_area_layers": "area_key_mode area_value_mode max_area_height max_area_width",
    "read only with another ffn_layer": """conv_first_kernel moe_hidden_sizes moe_k moe_loss_coef
        moe_num_experts moe_overhead_eval moe_overhead_train parameter_attention_key_channels
        parameter_attention_value_channels""",
    "read only with another learning_rate_decay_scheme": "learning_rate_cosine_cycle_steps",
    "read only with another optimizer": """optimizer_adafactor_beta1 optimizer_adafactor_beta2
        optimizer_adafactor_clipping_threshold optimizer_adafactor_decay_type optimizer_adafactor_factored
        optimizer_adafactor_memory_exponent optimizer_adafactor_multiply_by_parameter_scale
        optimizer_momentum_momentum optimizer_momentum_nesterov""",
    "read only with activations in float16": """mixed_precision_optimizer_init_loss_scale
        mixed_precision_optimizer_loss_scaler""",
    "read only with scheduled_sampling_prob": """scheduled_sampling_gold_mixin_prob scheduled_sampling_method
        scheduled_sampling_num_passes scheduled_sampling_warmup_schedule
        scheduled_sampling_warmup_steps""",
    "read only with split_targets_chunk_length": """split_targets_max_chunks
        split_targets_strided_training""",
    "read only with pack_dataset": "use_custom_ops",
    "of several problems at once": """multiproblem_fixed_train_length multiproblem_label_weight
        multiproblem_max_input_length multiproblem_max_target_length multiproblem_mixing_schedule
        multiproblem_per_task_threshold multiproblem_reweight_label_loss multiproblem_schedule_max_examples
        multiproblem_schedule_threshold multiproblem_target_eval_only multiproblem_vocab_size""",
    "of other models": """dropout kernel_height kernel_width video_num_input_frames
        video_num_target_frames""",
    "read by nothing": "compress_steps learning_rate_minimum nbr_decoder_problems pretrained_model_dir",
    "of evaluation and of decoding without beams": """eval_run_autoregressive force_full_predict
        overload_eval_metric_name sampling_keep_top_k sampling_method sampling_temp""",
    "how far batches are shuffled; ours are in chunks of half a million examples": "batch_shuffle_size",
    "how the same numbers are computed": """daisy_chain_variables factored_logits no_data_parallelism
        symbol_modality_num_shards tpu_enable_host_call use_pad_remover""",
    "what is logged": "mlperf_mode summarize_grads summarize_vars",
}

# Ours: what its `transformer` cannot be, flags of t2t-trainer and t2t-avg-all there, and what makes
# micro-batches of an update.
NOT_IN_T2T = {
    "attention_window",
    "decoder_self_attention",
    "deterministic_attention",
    "ema_decay",
    "freeze",
    "guided_alignment_weight",
    "lora_rank",
    "reverse_target",
    "subword_dropout",
    "subword_dropout_side",
    "train_steps",
    "average_checkpoints",
    "effective_batch_size",
}

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "hparams.json").read_text())
SETS = {name: {**REFERENCE["transformer_base"], **d} for name, d in REFERENCE["differences"].items()}


def factors(schedule: str, constant: float) -> tuple[set[str], float]:
    """Returns the factors of a schedule that depend on step or size, and a number."""
    names = set(schedule.split("*"))
    return names - {"constant"}, constant if "constant" in names else 1.0


def factors_in_t2t(values: dict[str, Any]) -> tuple[set[str], float]:
    """Evaluates T2T's "legacy", with its own constant, 10 * learning_rate: 5000 * 0.002 for kinds of Adam."""
    names, constant = factors(values["learning_rate_schedule"], values["learning_rate_constant"])
    return names, constant * (10 * values["learning_rate"] if "legacy" in names else 1.0)


def test_every_field_of_t2t_is_in_one_group() -> None:
    no_influence = [name for names in NO_INFLUENCE.values() for name in names.split()]
    grouped = [*SAME.split(), *RATE, *EXPRESSED, *ALWAYS, *no_influence]
    assert len(grouped) == len(set(grouped))
    for name, values in SETS.items():
        assert set(values) == set(grouped), name


def test_every_field_of_ours_is_compared() -> None:
    fields = {field.name for field in dataclasses.fields(HParams)}
    assert fields == {*SAME.split(), "learning_rate_constant", "learning_rate_schedule", *NOT_IN_T2T}


def test_the_sets_are_those_of_the_reference() -> None:
    assert {name for name in registry.list_hparams() if name.startswith("transformer_")} == set(SETS)


@pytest.mark.parametrize("name", SETS)
def test_values_are_those_of_tensor2tensor(name: str) -> None:
    h, values = registry.hparams(name), SETS[name]
    same = SAME.split()
    assert {field: getattr(h, field) for field in same} == {field: values[field] for field in same}
    assert {field: value(h) for field, value in EXPRESSED.items()} == {f: values[f] for f in EXPRESSED}
    assert {field: values[field] for field in ALWAYS} == ALWAYS
    assert factors(h.learning_rate_schedule, h.learning_rate_constant) == factors_in_t2t(values)


@pytest.mark.parametrize("name", SETS)
def test_lengths_of_a_training_are_those_of_its_commands(name: str) -> None:
    h = registry.hparams(name)
    assert (h.train_steps, h.average_checkpoints) == (250_000, 8)


def test_nothing_is_done_to_gradients() -> None:
    optimizer = make_optimizer(registry.hparams("transformer_base"))
    assert {optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm, optimizer.weight_decay} == {
        None
    }


def test_eight_micro_batches_on_one_device_one_on_eight() -> None:
    h = registry.hparams("transformer_base_multistep8")
    assert [accumulation(h, replicas) for replicas in (1, 2, 8)] == [8, 4, 1]
    assert accumulation(registry.hparams("transformer_base"), 1) == 1
