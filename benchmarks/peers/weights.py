"""A model's weights in a file that peers read without this project.

    python benchmarks/peers/weights.py --output_dir=OUTPUT_DIR --export_dir=FOLDER --peer=opennmt

Names and shapes; `side` is "encoder" or "decoder", N the number of a layer, from 0:

    source_embedding, target_embedding, softmax_embedding   [vocab, hidden]; the second alone if shared
    source_positions, target_positions                      [positions, hidden], added to embeddings
    side/N/self_attention/..., decoder/N/encoder_attention/...
        query, key [hidden, key], value [hidden, value], output [value, hidden], gamma, beta [hidden]
    side/N/feed_forward/...
        kernel_1 [hidden, filter], bias_1 [filter], kernel_2 [filter, hidden], bias_2, gamma, beta [hidden]
    side/final/gamma, side/final/beta                       [hidden]; pre-norm only

Reading it needs Python 3.7 or newer; see translating.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from t2t_revival import Transformer

LEAST_POSITIONS = 1024
SETTINGS, ARRAYS = "settings.json", "weights.npz"


def write_weights(model: Transformer, positions: int, folder: Path) -> None:
    """Writes the weights (float32) and settings of a model to a new folder.

    Args:
        model: a trained model.
        positions: number of position vectors to write.
        folder: must not exist.
    """
    folder.mkdir()
    (folder / SETTINGS).write_text(json.dumps(settings(model)), encoding="utf-8")
    np.savez(folder / ARRAYS, **arrays(model, positions))


def read_weights(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Reads the settings and arrays that `write_weights` wrote."""
    with np.load(str(folder / ARRAYS)) as file:
        return json.loads((folder / SETTINGS).read_text(encoding="utf-8")), dict(file)


def settings(model: Transformer) -> dict[str, Any]:
    """Returns `HParams.architecture` with vocab_size and norm_epsilon."""
    h = model.hparams
    return {**h.architecture(), "vocab_size": model.vocab_size, "norm_epsilon": h.norm_epsilon}


def refusal(peer: str, found: dict[str, Any]) -> str | None:
    """Returns the reason why `peer` cannot hold a model of these settings, or `None`."""
    if found["attention_window"]:
        return f"this model has restricted attention, attention_window={found['attention_window']}"
    if found["decoder_self_attention"] != "attention":
        return f"this model has decoder_self_attention={found['decoder_self_attention']}"
    sizes = (found["key_channels"], found["value_channels"])
    if peer == "opennmt" and sizes != (found["hidden_size"],) * 2:
        return (
            f"OpenNMT-tf has {found['hidden_size']} channels, the hidden size, for keys and values too; "
            f"this model has {sizes[0]} and {sizes[1]}"
        )
    return None


def arrays(model: Transformer, positions: int) -> dict[str, np.ndarray]:
    """Returns all weights by name, float32."""
    numbers = np.arange(positions)
    found = {
        "target_embedding": model.target_embedding.embeddings,
        "source_positions": model.source_positions.encode(numbers),
        "target_positions": model.target_positions.encode(numbers),
    }
    if not model.hparams.shared_embedding_and_softmax_weights:
        found["source_embedding"] = model.source_embedding.embeddings
        found["softmax_embedding"] = model.softmax_embedding.embeddings
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, layer in enumerate(stack.layers):
            for name, weight in _layer(layer).items():
                found[f"{side}/{number}/{name}"] = weight
        if stack.final_norm:
            found.update(_named(f"{side}/final", _norm(stack.final_norm)))
    return {name: np.asarray(weight, np.float32) for name, weight in found.items()}


def _layer(layer: Any) -> dict[str, Any]:
    feed_forward = {
        name: getattr(layer.feed_forward, name) for name in ("kernel_1", "bias_1", "kernel_2", "bias_2")
    }
    feed_forward.update(_norm(layer.feed_forward_residual.norm))
    found = _named("feed_forward", feed_forward)
    for name in ("self_attention", "encoder_attention"):
        if hasattr(layer, name):
            weights = {**_attention(getattr(layer, name)), **_norm(getattr(layer, name + "_residual").norm)}
            found.update(_named(name, weights))
    return found


def _attention(attention: Any) -> dict[str, Any]:
    key, value = attention.key_channels, attention.value_channels
    if attention.cross_attention:
        query_kernel, rest = attention.query_kernel, np.asarray(attention.key_value_kernel)
    else:
        query_kernel, rest = np.split(np.asarray(attention.query_key_value_kernel), [key], axis=1)
    key_kernel, value_kernel = rest[:, :key], rest[:, key : key + value]
    return {
        "query": query_kernel,
        "key": key_kernel,
        "value": value_kernel,
        "output": attention.output_kernel,
    }


def _norm(norm: Any) -> dict[str, Any]:
    return {"gamma": norm.gamma, "beta": norm.beta}


def _named(prefix: str, weights: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}/{name}": weight for name, weight in weights.items()}


def main() -> int:
    """Writes the weights of an output_dir; returns 1, with a line on stderr, if the peer cannot hold them."""
    from t2t_revival import T2TError, Translator

    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--export_dir", type=Path, required=True)
    parser.add_argument("--peer", choices=("opennmt", "t2t"), required=True)
    args = parser.parse_args()
    try:
        translator = Translator.load(args.output_dir)
    except (OSError, T2TError) as error:
        print(error, file=sys.stderr)
        return 1
    reason = refusal(args.peer, settings(translator.model))
    if reason:
        print(reason, file=sys.stderr)
        return 1
    positions = max(translator.max_length + translator.options.extra_length, LEAST_POSITIONS)
    write_weights(translator.model, positions, args.export_dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
