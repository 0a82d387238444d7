"""Section 5.4: label-smoothed cross-entropy; and the loss of a head that learns word alignments."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

LEAST = 1e-37  # smallest probability that a float32 softmax tells from 0
LEAST_WEIGHT = 1e-9  # of attention, whose logarithm is taken


def smoothed_cross_entropy(logits: Any, labels: Any, label_smoothing: float) -> Any:
    """Cross-entropy of each token against labels smoothed as in T2T (`smoothing_cross_entropy`).

    The right token has probability 1 - epsilon_ls, each of the others epsilon_ls / (vocab - 1). The
    entropy of that distribution is subtracted, as T2T does, so that the lowest value is 0.

    Args:
        logits: [tokens, vocab], float32 or bfloat16; computed in float32.
        labels: int [tokens].
        label_smoothing: epsilon_ls, at least 0 and below 1.

    Returns:
        float32 [tokens], in nats.
    """
    right, wrong, entropy = _smoothed(label_smoothing, logits.shape[-1])
    scores = ops.cast(logits, "float32")
    right_score = ops.take_along_axis(scores, labels[:, None], axis=-1)[:, 0]
    log_sum = ops.logsumexp(scores, axis=-1)
    return log_sum - (right - wrong) * right_score - wrong * ops.sum(scores, axis=-1) - entropy


def linear_cross_entropy(x: Any, embeddings: Any, labels: Any, label_smoothing: float) -> tuple[Any, Any]:
    """`smoothed_cross_entropy` of the logits x E^T, with a gradient that is never spread over the vocabulary.

    Smoothed labels are equal for all tokens of the vocabulary but one, so their part of the gradient is a sum
    over embeddings, and only the softmax itself takes part in matrix products: nothing else reads
    [tokens, vocab] afterwards, where the plain formula makes six more passes. The plain cross-entropy is a
    by-product, minus the logarithm of a probability that is computed anyway.

    Args:
        x: the decoder's output, [tokens, hidden], float32, bfloat16 or float16. Products and softmax are
            computed in its type, except for float16, whose softmax is computed in float32 since small
            probabilities would underflow. In bfloat16 a token's value is off by up to 0.004 either way.
        embeddings: float32 [vocab, hidden].
        labels: int [tokens].
        label_smoothing: epsilon_ls, at least 0 and below 1.

    Returns:
        The smoothed and the plain cross-entropy, float32 [tokens] each, in nats; too low where the right
        token's probability is below `LEAST`, while the gradient of the smoothed one is right there too. The
        plain one has no gradient.
    """
    vocab = embeddings.shape[0]
    right, wrong, entropy = _smoothed(label_smoothing, vocab)

    @ops.custom_gradient
    def cross_entropy(x: Any, embeddings: Any) -> Any:
        matrix = ops.cast(embeddings, x.dtype)
        logits = ops.matmul(x, ops.transpose(matrix))  # [tokens, vocab]
        if keras.backend.standardize_dtype(logits.dtype) == "float16":
            logits = ops.cast(logits, "float32")
        softmax = ops.softmax(logits, axis=-1)
        embedding_sum = ops.sum(embeddings, axis=0)  # [hidden]
        right_embeddings = ops.take(embeddings, labels, axis=0)  # [tokens, hidden]
        right_score, right_probability = (
            ops.cast(ops.take_along_axis(scores, labels[:, None], axis=-1)[:, 0], "float32")
            for scores in (logits, softmax)
        )
        score_sum = ops.matmul(ops.cast(x, "float32"), embedding_sum[:, None])[:, 0]  # [tokens]
        log_probability = ops.log(ops.maximum(right_probability, LEAST))
        log_sum = right_score - log_probability
        value = log_sum - (right - wrong) * right_score - wrong * score_sum

        def gradient(*args: Any, upstream: Any = None) -> tuple[Any, Any]:
            up = (args[0] if upstream is None else upstream)[0][:, None]  # [tokens, 1]
            shares = ops.cast(softmax, x.dtype)
            expected = ops.cast(ops.matmul(shares, matrix), "float32")  # [tokens, hidden]
            dx = (expected - (right - wrong) * right_embeddings - wrong * embedding_sum) * up
            weighted = ops.cast(x, "float32") * up  # [tokens, hidden]
            de = ops.matmul(ops.transpose(shares), ops.cast(weighted, x.dtype))  # [vocab, hidden]
            de = ops.cast(de, "float32") - wrong * ops.sum(weighted, axis=0)
            at_right = ops.segment_sum(weighted * (right - wrong), labels, num_segments=vocab)
            return ops.cast(dx, x.dtype), de - at_right

        both = ops.stack([value, -log_probability])  # backends differ in gradients of several tensors
        return both, gradient

    both = cross_entropy(x, embeddings)
    smoothed = both[0] - entropy
    return smoothed, ops.stop_gradient(both[1] if label_smoothing else smoothed)


def _smoothed(label_smoothing: float, vocab: int) -> tuple[float, float, float]:
    """Probability of the right token and of each wrong one, and the entropy of that distribution."""
    right, wrong = 1.0 - label_smoothing, label_smoothing / (vocab - 1)
    entropy = -right * math.log(right)
    if label_smoothing:
        entropy -= label_smoothing * math.log(wrong)
    return right, wrong, entropy


@keras.saving.register_keras_serializable("t2t_revival")
class TokenCrossEntropy(keras.losses.Loss):
    """Sum over all tokens of smoothed cross-entropy times the token's weight.

    With weights of mask / (number of tokens of the global batch), as `data.batching` makes them, this is
    the mean loss per token, and N replicas compute the same sum as one.

    Args:
        label_smoothing: epsilon_ls.
    """

    def __init__(
        self, label_smoothing: float = 0.0, name: str = "token_cross_entropy", **kwargs: Any
    ) -> None:
        super().__init__(name=name, reduction=kwargs.pop("reduction", "sum"), **kwargs)
        self.label_smoothing = label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Labels [batch, target] and logits [batch, target, vocab] -> [batch, target]."""
        shape = ops.shape(y_pred)
        flat = smoothed_cross_entropy(
            ops.reshape(y_pred, (-1, shape[-1])),
            ops.reshape(ops.cast(y_true, "int32"), (-1,)),
            self.label_smoothing,
        )
        return ops.reshape(flat, shape[:2])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def alignment_losses(attention: Any, alignments: Any) -> Any:
    """Cross-entropy of the head's weights against the aligned source tokens of each target token.

    The head aligns a token where it is read, a position after the one where it is predicted. References: Chen
    et al., 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation"; Garg et al., 2019,
    "Jointly Learning to Align and Translate with Transformer Models".

    Args:
        attention: the head's weights, [batch, target, source].
        alignments: shares of source tokens, float [batch, target, source]; 0 for a target token about which
            nothing is known, else with a sum of 1.

    Returns:
        float32 [batch, target], in nats; 0 where nothing is known, and at the last position.
    """
    read = ops.log(ops.maximum(ops.cast(attention[:, 1:], "float32"), LEAST_WEIGHT))
    losses = -ops.sum(alignments[:, :-1] * read, axis=-1)
    return ops.pad(losses, [[0, 0], [0, 1]])
