"""Flags of tensor2tensor's commands that are gone or have another name, and the answers to them.

`python docs/t2t_tables.py` writes the same rows into docs/from_tensor2tensor.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product

from t2t_revival.errors import did_you_mean
from t2t_revival.t2t_names import Row, find

TRAINER = "t2t-trainer"  # many of T2T's commands took its flags
HPARAM_PREFIX, HPARAM = "hp_", "hp_NAME"
PROBLEMS = Row("problems", "--problem", "of T2T 1.4 and before")
FROM_RUN = Row("model hparams", "", "read from output_dir")
CLOUD = "Cloud ML Engine is no more"

GONE: dict[str, tuple[Row, ...]] = {
    "t2t-trainer": (
        Row("eval_early_stopping_metric_minimize", "", "follows from the metric"),
        PROBLEMS,
        Row("model", "", "there is one model, the Transformer"),
        Row("generate_data", "", "data is made where it is missing"),
        Row("hp_NAME", "--hparams", 'as in `--hparams="batch_size=2048,num_heads=4"`'),
        Row(
            "hparams_range autotune_objective autotune_maximize autotune_max_trials autotune_parallel_trials",
            "",
            "a shell loop over `--hparams` does it on one machine; see docs/guides/training.md",
        ),
        Row("eval_use_test_set", "t2t-eval --eval_use_test_set", "the trainer looks at dev only"),
        Row("eval_timeout_mins", "t2t-eval --eval_timeout_mins"),
        Row(
            "eval_run_autoregressive",
            "--eval_bleu_sentences",
            "number of dev sentences that are decoded at each evaluation",
        ),
        Row(
            "eval_steps eval_throttle_seconds",
            "",
            "the whole dev split is evaluated, every `--local_eval_frequency` steps",
        ),
        Row("decode_hparams", "", "dev is decoded as the problem's `decode_hparams` say"),
        Row(
            "decode_from_file decode_to_file",
            "t2t-translate-all --source",
            "it runs beside the training, in place of schedules that decoded",
        ),
        Row("decode_reference", "t2t-bleu --translations_dir", "it runs beside the training"),
        Row(
            "schedule",
            "",
            "the trainer always trains and evaluates; the rest are `t2t-eval`, `t2t-decoder` and "
            "`t2t-translate-all`",
        ),
        Row("keep_checkpoint_every_n_hours", "--keep_checkpoint_max", "0 keeps all"),
        Row(
            "worker_gpu gpu_order optionally_use_dist_strat",
            "--strategy",
            "all visible GPUs are used; CUDA_VISIBLE_DEVICES selects them",
        ),
        Row(
            "worker_replicas worker_job worker_id master sync std_server_protocol",
            "--strategy=multi_worker",
            "TF_CONFIG describes the workers; `t2t-make-tf-configs` writes it",
        ),
        Row("ps_replicas ps_job ps_gpu", "", "synchronous training needs no parameter servers"),
        Row("worker_gpu_memory_fraction", "", "TF_FORCE_GPU_ALLOW_GROWTH=true, TensorFlow's own"),
        Row("gpu_automatic_mixed_precision", "--precision=mixed_bfloat16", "needs no loss scaling"),
        Row("xla_compile xla_jit_level", "--xla"),
        Row(
            "inter_op_parallelism_threads intra_op_parallelism_threads",
            "",
            "chosen from the number of cores; taskset gives fewer",
        ),
        Row(
            "export_saved_model export_saved_model_api_version use_guarantee_const_getter",
            "t2t-exporter",
            "T2T had deprecated the first",
        ),
        Row(
            "use_tpu use_tpu_estimator tpu_num_shards tpu_job_name tpu_infeed_sleep_secs iterations_per_loop "
            "cloud_tpu_name",
            "",
            "TPUs through TensorFlow 1",
        ),
        Row(
            "cloud_mlengine cloud_mlengine_master_type job-dir",
            "",
            f"{CLOUD}; `docs/several_machines.md` has recipes for Slurm and Kubernetes",
        ),
        Row(
            "profile dbgprofile tfdbg log_device_placement enable_graph_rewriter",
            "",
            "tools and switches of TensorFlow 1's sessions",
        ),
    ),
    "t2t-datagen": (
        PROBLEMS,
        Row("only_list", "--registry_help"),
        Row("exclude_problems", "", "was for `--problem=*`"),
        Row("num_shards", "", "10 of train, 100 from a million pairs on; of dev and test one"),
        Row("max_cases", "", "`head` makes a smaller corpus for `--data_source`"),
        Row("random_seed", "", "the same data is made each time"),
        Row("task_id task_id_start task_id_end", "--runner", "Apache Beam shares out the shards"),
        Row("num_concurrent_processes", "", "as many as there are cores"),
        Row("parsing_path", "--data_source", "a treebank"),
        Row("timit_paths env_problem_max_env_steps env_problem_batch_size", "", "speech and games"),
    ),
    "t2t-decoder": (
        PROBLEMS,
        FROM_RUN,
        Row("decode_reference", "t2t-bleu --reference"),
        Row(
            "keep_timestamp",
            "t2t-translate-all",
            "its files have the modification times of their checkpoints",
        ),
        Row("decode_in_memory disable_grappler_optimizations", "", "switches of TensorFlow 1"),
    ),
    "t2t-eval": (Row("eval_steps", "", "the whole split is evaluated"), FROM_RUN),
    "t2t-exporter": (
        Row("data_dir model hparams", "", "vocabulary and settings are in output_dir"),
        Row("export_as_tfhub as_text", "", "TF Hub modules are of TensorFlow 1"),
    ),
    "t2t-query-server": (
        Row("data_dir", "", "the vocabulary is in the exported model"),
        Row("cloud_mlengine_model_name cloud_mlengine_model_version", "", CLOUD),
    ),
    "t2t-avg-all": (
        Row("num_last_checkpoints", "--n", "of `avg_checkpoints.py`"),
        Row(
            "checkpoints prefix output_path",
            "",
            "of `avg_checkpoints.py`: the newest are averaged, into averaged/",
        ),
    ),
    "t2t-translate-all": (
        Row("decoder_command", "", "it decodes itself, and starts TensorFlow once"),
        Row("model data_dir", "", "read from model_dir"),
    ),
    "t2t-bleu": (Row("source", "", "T2T did not read it"),),
    "t2t-make-tf-configs": (
        Row("ps", "--masters", "in T2T's sync mode these were the workers; there are no parameter servers"),
    ),
}
SAME = {  # T2T's flags of which each command has one of this name
    "t2t-trainer": "problem hparams_set hparams t2t_usr_dir registry_help data_dir output_dir tmp_dir "
    "warm_start_from train_steps random_seed local_eval_frequency save_checkpoints_secs keep_checkpoint_max "
    "log_step_count_steps eval_early_stopping_steps eval_early_stopping_metric "
    "eval_early_stopping_metric_delta",
    "t2t-datagen": "data_dir tmp_dir t2t_usr_dir problem",
    "t2t-decoder": "problem hparams_set t2t_usr_dir registry_help output_dir decode_hparams decode_from_file "
    "decode_to_file data_dir checkpoint_path decode_interactive decode_shards worker_id score_file "
    "eval_use_test_set",
    "t2t-eval": "problem hparams_set output_dir data_dir t2t_usr_dir eval_use_test_set eval_timeout_mins",
    "t2t-exporter": "problem hparams_set output_dir t2t_usr_dir decode_hparams export_dir checkpoint_path",
    "t2t-query-server": "server servable_name inputs_once t2t_usr_dir timeout_secs problem",
    "t2t-avg-all": "model_dir min_steps wait_minutes output_dir n",
    "t2t-translate-all": "model_dir source min_steps wait_minutes beam_size alpha translations_dir problem "
    "hparams_set t2t_usr_dir",
    "t2t-bleu": "translation reference translations_dir event_dir bleu_variant tag_suffix report_zero "
    "wait_minutes min_steps",
    "t2t-make-tf-configs": "masters",
}


def explain_flags(command: str, unknown: Iterable[str], known: Collection[str]) -> list[str]:
    """Explains flags that a command does not have, T2T's first; those of the same fate share a line.

    Names have no dashes. A near one of the `known` is suggested for a flag that T2T never had.
    """
    fates: dict[str, list[str]] = {}
    never_known = []
    for name in dict.fromkeys(unknown):
        if fate := _fate(command, name, known):
            fates.setdefault(fate, []).append(f"--{name}")
        else:
            never_known.append(did_you_mean(name, known, "flag"))
    explained = [f"{', '.join(names)} {'are' if names[1:] else 'is'} {fate}" for fate, names in fates.items()]
    return explained + never_known


def _fate(command: str, name: str, known: Collection[str]) -> str | None:
    """Returns the fate of a flag of tensor2tensor; `None` if it had none of this name."""
    if name.startswith(HPARAM_PREFIX):
        name = HPARAM
    owners = dict.fromkeys([command, TRAINER, *GONE])
    for plain, owner in product(dict.fromkeys([name, name.removeprefix("no")]), owners):
        if row := find(plain, GONE.get(owner, ())):
            return f"{_here(row, owner, known)}{f': {row.plain_note}' if row.note else ''}"
        if plain in SAME.get(owner, "").split():
            return f"a flag of {owner}, and does nothing in {command}"
    return None


def _here(row: Row, owner: str, known: Collection[str]) -> str:
    if not row.here:
        return "gone"
    flag = row.here.removeprefix("--").partition("=")[0]
    elsewhere = row.here.startswith("--") and flag not in known
    return f"now {owner} {row.here}" if elsewhere else f"now {row.here}"
