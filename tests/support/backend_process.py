"""Processes in which Keras has another backend than TensorFlow, on a CPU."""

from __future__ import annotations

import os
import subprocess

# What JAX compiles runs a few times here: it would be optimized in vain, which takes most of a test's time.
IN_JAX = {
    "JAX_PLATFORMS": "cpu",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
}
OLD_EMITTERS = "--xla_cpu_use_fusion_emitters=false"  # compile sooner
UNKNOWN = "Unknown flag in XLA_FLAGS"  # says an XLA that has no such choice


def run_with_backend(
    command: list[str], backend: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command with these variables beside those of this process, and returns its output as text."""
    variables = {**os.environ, **IN_JAX, "KERAS_BACKEND": backend, **environment}
    own_flags = variables.get("XLA_FLAGS", "")
    for flags in (f"{own_flags} {OLD_EMITTERS}", own_flags):
        variables["XLA_FLAGS"] = flags
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
        if UNKNOWN not in done.stderr:
            break
    return done
