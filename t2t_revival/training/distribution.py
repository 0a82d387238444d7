"""Section 5.2: the devices on which a model trains."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.training.workers import check_tf_config

STRATEGIES = ("auto", "default", "mirrored", "multi_worker")


def make_strategy(name: str = "auto") -> tf.distribute.Strategy:
    """The strategy of that name.

    Args:
        name: "default" for one device, "mirrored" for all GPUs (without any: all logical CPUs), "auto" for
            "mirrored" where there are several GPUs and "default" elsewhere; "multi_worker" for all GPUs of
            the machines that `TF_CONFIG` names, to be made before TensorFlow computes anything.

    Raises:
        T2TError: there is no such strategy, or `TF_CONFIG` is invalid.
    """
    if name not in STRATEGIES:
        raise T2TError(f"--strategy={name} is not one of {', '.join(STRATEGIES)}")
    if name == "multi_worker":
        check_tf_config()
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "default" or (name == "auto" and len(gpus) < 2):
        return tf.distribute.get_strategy()
    devices = gpus or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def accumulation(hparams: HParams, replicas: int) -> int:
    """Micro-batches of one update, so that it sees about `effective_batch_size` tokens.

    Args:
        hparams: reads `batch_size` (tokens per replica) and `effective_batch_size`, which is 0 without
            accumulation.
        replicas: number of replicas that share each micro-batch.
    """
    return max(1, math.floor(hparams.effective_batch_size / (hparams.batch_size * replicas) + 0.5))


def replica_number() -> Any:
    """Number of the current replica among those of all workers, an int or int scalar; 0 outside of any."""
    context = tf.distribute.get_replica_context()
    return context.replica_id_in_sync_group if context else 0
