"""Contestants of benchmarks/decode_speed.py: inputs of OpenNMT-tf and tensor2tensor; one that falls over.

T2T_PYTHON and ONMT_PYTHON name interpreters that have them.
"""

import ast
import os
from pathlib import Path

import decode_speed
import keras
import numpy as np
import pytest
import translating
import weights
from peers.processes import Process

from t2t_revival import HParams, Transformer
from t2t_revival.data.vocabulary.sentencepiece import EOS

VOCAB, POSITIONS, COMPARED = 60, 90, 20
SCRIPTS = Path(weights.__file__).parent
PRE_NORM = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}
APART = {"shared_embedding_and_softmax_weights": False, "num_encoder_layers": 1, "pos": "timing"}
PEERS = {
    "t2t": ("T2T_PYTHON", "t2t_decoding.py"),
    "opennmt": ("ONMT_PYTHON", "onmt_decoding.py"),
}


def make_model(**changes):
    """With norms and biases that could not be taken for those of no training, and outputs that differ."""
    keras.utils.set_random_seed(5)
    hparams = HParams(num_hidden_layers=2, hidden_size=16, filter_size=24, num_heads=2, **changes)
    model = Transformer(hparams, VOCAB)
    random = np.random.default_rng(1)
    for weight in model.weights:
        if len(weight.shape) == 1:
            weight.assign(weight + random.normal(0, 0.3, weight.shape))
        elif "encoder_attention" in weight.path:
            weight.assign(weight * 4)
    model.softmax_embedding.embeddings.assign(model.softmax_embedding.embeddings * 3)
    return model


def greedy(model, sources, length):
    """The likeliest next token again and again, PAD taken out: int [sentences, length]."""
    inputs = translating.padded([[*source, EOS] for source in sources])
    targets = np.zeros((len(sources), length), np.int32)
    for position in range(length):
        logits = np.array(model({"inputs": inputs, "targets": targets}))
        targets[:, position] = logits[:, position, 1:].argmax(axis=-1) + 1
    return targets


@pytest.mark.parametrize("changes", [{}, PRE_NORM, {**PRE_NORM, **APART}, {"attention_key_channels": 8}])
def test_each_weight_is_in_the_file_once(tmp_path, changes):
    model = make_model(**changes)
    weights.write_weights(model, POSITIONS, tmp_path / "model")
    settings, arrays = weights.read_weights(tmp_path / "model")
    positions = [arrays.pop(f"{side}_positions") for side in ("source", "target")]
    assert [table.shape for table in positions] == [(POSITIONS, 16)] * 2
    assert sum(array.size for array in arrays.values()) == model.count_params()
    assert (settings["vocab_size"], settings["hidden_size"]) == (VOCAB, 16)
    assert {array.dtype for array in arrays.values()} == {np.dtype("float32")}


def test_outputs_come_back_in_the_order_of_their_lines():
    asked = []

    def ask(lines):
        asked.append(lines)
        return [line.upper() for line in lines]

    lines = ["a", "bb", "", "dddd", "ccc"]
    assert translating.in_batches(lines, 2, 1, ask) == ["A", "BB", "", "DDDD", "CCC"]
    assert asked == [["dddd", "ccc"], ["bb", "a"], [""]]


@pytest.mark.parametrize("script", ["translating.py", "weights.py", "t2t_decoding.py"])
def test_what_tensor2tensor_runs_is_of_its_python(script):
    ast.parse((SCRIPTS / script).read_text(), feature_version=(3, 7))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("changes", [{}, {**PRE_NORM, **APART}])
def test_a_peer_gives_the_same_greedy_outputs(tmp_path, peer, changes):
    variable, script = PEERS[peer]
    if variable not in os.environ:
        pytest.skip(f"{variable} names no interpreter")
    model = make_model(**changes)
    weights.write_weights(model, POSITIONS, tmp_path / "model")
    random = np.random.default_rng(2)
    sources = [random.integers(3, VOCAB, length).tolist() for length in range(1, 13)]
    lines = [" ".join(map(str, source)) for source in sources]
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    command = [
        os.environ[variable],
        str(SCRIPTS / script),
        f"--engine={peer}",
        '--options={"beam_size": 1}',
        f"--folder={tmp_path / 'model'}",
        "--num_parallel_batches=1",
        f"--lines={tmp_path / 'lines'}",
        f"--outputs={tmp_path / 'outputs'}",
    ]
    process = Process(command, tmp_path / "log")
    try:
        assert process.ask("go 4")["sentences"] == len(lines)
        assert len(process.ask("one 2")["milliseconds"]) == 2
    finally:
        process.stop()
    outputs = [output.split() for output in (tmp_path / "outputs").read_text().splitlines()]
    expected = [translating.line_of(row).split() for row in greedy(model, sources, COMPARED).tolist()]
    assert len({tuple(ids) for ids in expected}) > 4
    assert [ids[:COMPARED] for ids in outputs] == expected


FLAGS = ["--models=a=x,b=y", "--inputs=x", "--references=y"]


class Falling:
    """A contestant's process that answers a few times."""

    def __init__(self, answers):
        self.answers = answers

    def watched(self, command):
        if not self.answers:
            raise decode_speed.ContestantError("ended with status -11")
        self.answers -= 1
        return {"command": command}


def test_who_falls_over_is_left_out_and_the_others_go_on(capsys, tmp_path):
    args = decode_speed.parse_flags(FLAGS)
    competition = decode_speed.Competition({}, args, tmp_path, num_parallel_batches=1)
    competition.processes = {"a": Falling(1), "b": Falling(9)}
    assert [sorted(competition.round(number, "go 8")) for number in range(3)] == [["a", "b"], ["b"], ["b"]]
    assert "a, go 8: dropped: ended with status -11" in capsys.readouterr().err
