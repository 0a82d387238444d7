"""Packed rows: each pair has the logits, losses and gradients that it has alone, and sees no other."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_revival import registry
from t2t_revival.data.packing import SEGMENTS, pack, places_of
from t2t_revival.training.model import build_model

SIZES = "hidden_size=32,filter_size=64,num_heads=2,max_length=24,layer_prepostprocess_dropout=0"
VOCAB, LENGTH = 50, 24
VARIATIONS = (
    "pos=timing",
    "pos=emb",
    "pos=rotary",
    "pos=relative,max_relative_position=2",
    "decoder_self_attention=ssru",
    "norm_type=rms,ffn_activation=swiglu",
    "use_target_space_embedding=true,projection_bias=true,softmax_bias=true",
    "layer_preprocess_sequence=none,layer_postprocess_sequence=dan",
    "guided_alignment_weight=0.5",
)


def examples(seed=0, count=9):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 9, (count, 2))
    return [[[*generator.integers(3, VOCAB, size), 1] for size in pair] for pair in sizes.tolist()]


def in_rows(pairs, shares):
    """Returns a batch of a row for each pair."""
    width = max(len(side) for pair in pairs for side in pair)
    sides = [np.array([side + [0] * (width - len(side)) for side in one]) for one in zip(*pairs, strict=True)]
    batch = dict(zip(("inputs", "targets"), sides, strict=True))
    aligned = np.zeros((len(pairs), width, width), np.float32)
    for row, share in zip(aligned, shares, strict=True):
        row[: share.shape[0], : share.shape[1]] = share
    return batch | {"alignments": aligned}


def packed(pairs, shares):
    """Returns a packed batch with a row of padding; and row, first source and first target of each pair."""
    source, target = (np.array([len(side) for side in one]) for one in zip(*pairs, strict=True))
    rows = pack(source, target, LENGTH)
    places = places_of(rows, source, target)
    batch = {name: np.zeros((len(rows) + 1, LENGTH), int) for name in ("inputs", "targets", *SEGMENTS)}
    batch["alignments"] = np.zeros((len(rows) + 1, LENGTH, LENGTH), np.float32)
    where = {}
    for member, row, number, *begins in zip(np.concatenate(rows).tolist(), *places, strict=True):
        spans = [slice(begin, begin + len(side)) for begin, side in zip(begins, pairs[member], strict=True)]
        for name, segments, side, span in zip(
            ("inputs", "targets"), SEGMENTS, pairs[member], spans, strict=True
        ):
            batch[name][row, span], batch[segments][row, span] = side, number
        batch["alignments"][row, spans[1], spans[0]] = shares[member]
        where[member] = row, spans[1]
    return batch, where


def alignments(pairs):
    """Returns shares of source tokens of each target token but the last."""
    generator = np.random.default_rng(7)
    shares = [generator.dirichlet(np.ones(len(source)), len(target)) for source, target in pairs]
    for share in shares:
        share[-1] = 0
    return shares


@pytest.fixture(params=VARIATIONS)
def model(request):
    keras.utils.set_random_seed(3)
    model = build_model(registry.hparams("tiny", f"{SIZES},{request.param}"), VOCAB)
    for weight in model.weights:
        if "target_space" in weight.path or "bias" in weight.path:
            weight.assign(np.random.default_rng(1).normal(size=weight.shape))
    return model


def without_alignments(batch):
    return {name: array for name, array in batch.items() if name != "alignments"}


def test_logits_are_those_of_pairs_alone(model):
    pairs = examples()
    alone, (rows, where) = in_rows(pairs, alignments(pairs)), packed(pairs, alignments(pairs))
    expected, found = (np.array(model(without_alignments(batch))) for batch in (alone, rows))
    for member, (row, span) in where.items():
        np.testing.assert_allclose(found[row, span], expected[member, : len(pairs[member][1])], atol=1e-5)
    assert np.isfinite(found).all()


def test_loss_and_gradients_are_those_of_pairs_alone(model):
    tensorflow = pytest.importorskip("tensorflow")
    pairs = examples(1)
    results = []
    for batch in (in_rows(pairs, alignments(pairs)), packed(pairs, alignments(pairs))[0]):
        if not model.hparams.guided_alignment_weight:
            batch = without_alignments(batch)
        batch = {name: ops.convert_to_tensor(array) for name, array in batch.items()}
        weights = ops.cast(batch["targets"] != 0, "float32") / 100
        with tensorflow.GradientTape() as tape:
            loss, _ = model.token_losses(batch, batch["targets"], model(batch, training=True), weights)
        gradients = tape.gradient(loss, [weight.value for weight in model.trainable_weights])
        results.append([loss, *map(tensorflow.convert_to_tensor, gradients)])
    for alone, in_packed_rows in zip(*results, strict=True):
        np.testing.assert_allclose(in_packed_rows, alone, rtol=1e-5, atol=1e-5)


def test_no_pair_sees_another(model):
    pairs = examples(2)
    before, where = packed(pairs, alignments(pairs))
    changed = without_alignments(before)
    first = min(where, key=lambda member: (where[member][0], where[member][1].start))
    row, span = where[first]
    of_pair = [changed[name][row] == changed[SEGMENTS[1]][row, span.start] for name in SEGMENTS]
    for name, own in zip(("inputs", "targets"), of_pair, strict=True):
        changed[name] = changed[name].copy()
        changed[name][row, own] = 2
    one, other = (np.array(model(without_alignments(batch))) for batch in (before, changed))
    differs = np.abs(one - other).max(axis=-1) > 1e-6
    assert differs[row, span][1:].all()
    differs[row, span] = False
    assert not differs.any()
