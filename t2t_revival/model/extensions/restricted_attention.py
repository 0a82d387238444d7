"""Section 4: self-attention restricted to a neighbourhood of r positions, hparam `attention_window`.

Position i sees

- in the encoder i - r // 2 ... i + (r - 1) // 2: r positions, i in their middle; an even r has one more
  before i than after it. At both ends of a sentence the neighbourhood is cut off, not moved.
- in the decoder i - r // 2 ... i: what section 3.2.3 leaves of the same neighbourhood. The paper centres it
  and masks what is later, as in full attention, so that one r reaches as far back in both stacks.

Attention over the encoder's output is not restricted. The weights are those of full attention.

A sentence is cut into blocks that are as long as a neighbourhood reaches, or longer. The queries of a block
meet the keys of the block, and of the two beside it as many as its outermost positions see. That takes
n * (r + block) scores, where full attention takes n * n, and no tensor of n * n elements is ever made.

Shapes as in `attention`; `blocks` of one sentence, `block` positions of one, `near` positions whose keys a
block meets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model.attention import (
    MASKED,
    MultiHeadAttention,
    recording,
    scaled_dot_product_attention,
)

LEAST_BLOCK = 128  # positions; shorter blocks would save fewer products than what surrounds them costs
OUTSIDE = 2 * MASKED  # hides more than padding: where all neighbours are padding, others stay hidden


class Blocks(NamedTuple):
    """How sentences of one length are cut; int scalars where the length is known at run time only.

    Attributes:
        number: blocks of a sentence.
        size: positions of a block; the last one has padding at its end.
        before: positions of the block before it that a block meets.
        after: positions of the block after it that a block meets.
    """

    number: Any
    size: Any
    before: Any
    after: Any

    @property
    def padded(self) -> Any:
        """Positions of all blocks of a sentence."""
        return self.number * self.size

    @property
    def near(self) -> Any:
        """Positions whose keys a block meets."""
        return self.before + self.size + self.after


class Neighbourhood(NamedTuple):
    """What a position sees besides itself.

    Attributes:
        before: how many positions right before it.
        after: how many positions right after it.
    """

    before: int
    after: int

    @classmethod
    def of(cls, hparams: HParams, masked: bool) -> Neighbourhood | None:
        """Of `attention_window`; `masked`: whether later positions are hidden. None: all are seen."""
        window = hparams.attention_window
        if not window:
            return None
        return cls(window // 2, 0 if masked else (window - 1) // 2)

    def cut(self, length: Any) -> Blocks:
        """Into blocks that no neighbourhood reaches across; a sentence shorter than two of them is one."""
        number = _at_least(1, length // max(self.before, self.after, LEAST_BLOCK))
        size = (length + number - 1) // number
        others = (number - 1) * size
        return Blocks(number, size, _at_most(self.before, others), _at_most(self.after, others))

    def bias(self, bias: Any) -> Any:
        """Hides from each position what is not in its neighbourhood.

        Args:
            bias: of each position, as that of `padding_bias`: [batch, 1, 1, length].

        Returns:
            [batch * blocks, 1, block, near], for `RestrictedSelfAttention`.
        """
        length = ops.shape(bias)[3]
        blocks = self.cut(length)
        bias = ops.reshape(bias, (-1, length))
        bias = ops.pad(bias, [[0, 0], [0, blocks.padded - length]], constant_values=OUTSIDE)
        of_keys = with_neighbours(ops.reshape(bias, (-1, 1, blocks.size, 1)), blocks, OUTSIDE)
        distance = ops.arange(blocks.near)[None, :] - blocks.before - ops.arange(blocks.size)[:, None]
        far = ops.logical_or(distance < -self.before, distance > self.after)  # [block, near]
        return ops.transpose(of_keys, (0, 1, 3, 2)) + ops.cast(far, bias.dtype) * OUTSIDE

    def hide_left(self, bias: Any) -> Any:
        """Hides from hypotheses, while they grow, what has left their neighbourhood.

        Args:
            bias: [batch, beams, memory]. Memory is in the order of positions, and shows to each hypothesis
                one of each position, from some position on: what it descends from.
        """
        own = ops.cast(bias > MASKED / 2, "int32")
        distance = ops.sum(own, axis=2, keepdims=True) - ops.cumsum(own, axis=2)  # from the newest position
        return ops.where(distance > self.before, MASKED, bias)


class RestrictedSelfAttention(MultiHeadAttention):
    """`MultiHeadAttention` of a sentence over itself, in which each position sees its neighbourhood only.

    Args:
        hparams: see `MultiHeadAttention`.
        neighbourhood: of each position.
    """

    def __init__(self, hparams: HParams, neighbourhood: Neighbourhood, **kwargs: Any) -> None:
        super().__init__(hparams, **kwargs)
        self.neighbourhood = neighbourhood

    def call(self, x: Any, encoded: Any = None, bias: Any = None, training: bool = False) -> Any:
        """MultiHead(Q, K, V), block by block: each is to the projections a sentence of its own.

        Args:
            x: [batch, length, hidden].
            encoded: None.
            bias: of `Neighbourhood.bias`, [batch * blocks, 1, block, near].
            training: whether dropout is active.

        Returns:
            [batch, length, hidden].
        """
        length = ops.shape(x)[1]
        blocks = self.neighbourhood.cut(length)
        x = ops.pad(x, [[0, 0], [0, blocks.padded - length], [0, 0]])
        rows = ops.reshape(x, (-1, self.hidden_size))  # [batch * blocks * block, hidden]
        query, *parts = self._query_key_value_heads(rows, blocks.size)
        key, value = (with_neighbours(part, blocks) for part in parts)
        heads = scaled_dot_product_attention(query, key, value, bias, self.dropout, training)
        if record := recording():
            record[-1] = whole_weights(record[-1], blocks, length)
        return ops.reshape(self._join(heads), (-1, blocks.padded, self.hidden_size))[:, :length]


def self_attention(hparams: HParams, masked: bool, name: str) -> MultiHeadAttention:
    """Full or restricted, as `attention_window` says; `masked`: whether later positions are hidden."""
    neighbourhood = Neighbourhood.of(hparams, masked)
    if neighbourhood is None:
        return MultiHeadAttention(hparams, name=name)
    return RestrictedSelfAttention(hparams, neighbourhood, name=name)


def with_neighbours(part: Any, blocks: Blocks, outside: float = 0.0) -> Any:
    """Puts before and after each block what it meets of the blocks beside it.

    Args:
        part: [batch * blocks, heads, block, channels].
        blocks: how sentences are cut.
        outside: stands where a sentence has no block any more.

    Returns:
        [batch * blocks, heads, near, channels].
    """
    heads, channels = part.shape[1], part.shape[3]
    part = ops.reshape(part, (-1, blocks.number, heads, blocks.size, channels))
    before = part[:, :-1, :, blocks.size - blocks.before :]
    after = part[:, 1:, :, : blocks.after]
    rest = [[0, 0]] * 3
    before = ops.pad(before, [[0, 0], [1, 0], *rest], constant_values=outside)
    after = ops.pad(after, [[0, 0], [0, 1], *rest], constant_values=outside)
    joined = ops.concatenate([before, part, after], axis=3)
    return ops.reshape(joined, (-1, heads, blocks.near, channels))


def whole_weights(weights: Any, blocks: Blocks, length: Any) -> Any:
    """Weights of blocks, [batch * blocks, heads, block, near] -> [batch, heads, length, length]."""
    heads = weights.shape[1]
    first = ops.arange(blocks.number)[:, None] * blocks.size - blocks.before
    places = first + ops.arange(blocks.near)[None, :]  # [blocks, near]
    is_at = ops.equal(places[:, :, None], ops.arange(length))  # [blocks, near, length]
    weights = ops.reshape(weights, (-1, blocks.number, heads, blocks.size, blocks.near))
    weights = ops.einsum("bnhqm,nml->bhnql", weights, ops.cast(is_at, weights.dtype))
    return ops.reshape(weights, (-1, heads, blocks.padded, length))[:, :, :length]


def _at_least(least: int, x: Any) -> Any:
    return max(least, x) if isinstance(x, int) else ops.maximum(least, x)


def _at_most(most: int, x: Any) -> Any:
    return min(most, x) if isinstance(x, int) else ops.minimum(most, x)
