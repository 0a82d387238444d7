"""Section 4: self-attention restricted to a neighbourhood of r positions, hparam `attention_window`.

Position i sees

- in the encoder i - r // 2 ... i + (r - 1) // 2: r positions, i in their middle; an even r has one more
  before i than after it. At both ends of a sentence the neighbourhood is truncated, not moved.
- in the decoder i - r // 2 ... i: what section 3.2.3 leaves of the same neighbourhood. The paper centres it
  and masks what is later, as in full attention, so that one r reaches as far back in both stacks.

Attention over the encoder's output is not restricted. The weights are those of full attention.

A sentence is split into blocks that are as long as a neighbourhood reaches, or longer. The queries of a
block meet the keys of the block, and of the two beside it as many as its outermost positions see:

    blocks              |   block 0   |   block 1   |   block 2  ..|      block positions each; .. is padding
    queries of block 1                 q q q q q q q
    their keys                     k k k k k k k k k k k                  near = before + block + after

That takes n * (r + block) scores, where full attention takes n * n, and no tensor of n * n elements is ever
made.

Shapes as in `attention`; `blocks` of one sentence, `block` positions of one, `near` positions whose keys a
block meets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival.model.attention import MASKED, MultiHeadAttention, padding_bias, scaled_dot_product_attention
from t2t_revival.model.incremental import next_bias, positions_ago, show_newest
from t2t_revival.model.layer import LayerConfig

MIN_BLOCK = 128  # positions; shorter blocks would save fewer products than their overhead costs
OUTSIDE = 2 * MASKED  # hides more than padding: where all neighbours are padding, others stay hidden


class Blocks(NamedTuple):
    """Blocks of sentences of one length; int scalars where the length is known at run time only.

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
    """Positions that a position sees besides itself.

    Attributes:
        before: number of positions right before it.
        after: number of positions right after it.
    """

    before: int
    after: int

    @classmethod
    def of_window(cls, window: int, causal: bool) -> Neighbourhood:
        """Returns the neighbourhood of `window` positions, without later ones if `causal`."""
        return cls(window // 2, 0 if causal else (window - 1) // 2)

    def split_into_blocks(self, length: Any) -> Blocks:
        """Returns blocks that no neighbourhood reaches across; a sentence shorter than two of them is one."""
        number = length // max(self.before, self.after, MIN_BLOCK)
        number = max(1, number) if isinstance(number, int) else ops.maximum(1, number)
        size = (length + number - 1) // number
        others = (number - 1) * size
        return Blocks(number, size, _at_most(self.before, others), _at_most(self.after, others))

    def bias(self, bias: Any) -> Any:
        """Hides from each position what is not in its neighbourhood.

        Args:
            bias: that of `padding_bias`, [batch, 1, 1, length].

        Returns:
            [batch * blocks, 1, block, near].
        """
        length = ops.shape(bias)[3]
        blocks = self.split_into_blocks(length)
        bias = ops.reshape(bias, (-1, length))
        bias = ops.pad(bias, [[0, 0], [0, blocks.padded - length]], constant_values=OUTSIDE)
        of_keys = with_neighbours(ops.reshape(bias, (-1, 1, blocks.size, 1)), blocks, OUTSIDE)
        distance = ops.arange(blocks.near)[None, :] - blocks.before - ops.arange(blocks.size)[:, None]
        far = ops.logical_or(distance < -self.before, distance > self.after)  # [block, near]
        return ops.transpose(of_keys, (0, 1, 3, 2)) + ops.cast(far, bias.dtype) * OUTSIDE

    def hide_distant(self, bias: Any) -> Any:
        """Hides from growing hypotheses the positions that are no longer in their neighbourhood.

        Args:
            bias: [batch, beams, memory]; see `positions_ago`.
        """
        return ops.where(positions_ago(bias) > self.before, MASKED, bias)


@keras.saving.register_keras_serializable("t2t_revival")
class RestrictedSelfAttention(MultiHeadAttention):
    """`MultiHeadAttention` of a sentence over itself, in which each position sees its neighbourhood only.

    Its neighbourhood has the `attention_window` positions of the config.

    Example:
        attention = RestrictedSelfAttention(LayerConfig(num_heads=8, hidden_size=512, attention_window=64))
        output = attention(x, mask=ids != 0)    # [batch, length, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 4; T2T's `local_attention_1d`.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.neighbourhood = Neighbourhood.of_window(config.attention_window, self.causal)

    def call(
        self,
        x: Any,
        encoded: Any = None,
        mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        """MultiHead(Q, K, V), block by block: to the projections, each is a sentence of its own.

        Args and results are those of `MultiHeadAttention.call`; `encoded` is `None`.
        """
        bias = self.attention_bias(x, mask)
        length = ops.shape(x)[1]
        blocks = self.neighbourhood.split_into_blocks(length)
        x = ops.pad(x, [[0, 0], [0, blocks.padded - length], [0, 0]])
        rows = ops.reshape(x, (-1, self.hidden_size))  # [batch * blocks * block, hidden]
        query, *parts = self.project(rows, blocks.size)
        key, value = (with_neighbours(part, blocks) for part in parts)
        heads, weights = scaled_dot_product_attention(query, key, value, bias, self.dropout, training)
        output = ops.reshape(self.join(heads), (-1, blocks.padded, self.hidden_size))[:, :length]
        return (output, full_weights(weights, blocks, length)) if return_attention_scores else output

    def attention_bias(self, x: Any, mask: Any = None) -> Any:
        """Returns the bias of `x`, [batch * blocks, 1, block, near]; see `MultiHeadAttention`."""
        mask = ops.ones(ops.shape(x)[:2], "bool") if mask is None else mask
        return ops.cast(self.neighbourhood.bias(padding_bias(mask)), self.compute_dtype)


@next_bias.register
def _(attention: RestrictedSelfAttention, bias: Any, batch: Any, beams: Any, cache: Any) -> Any:
    return attention.neighbourhood.hide_distant(show_newest(bias, batch, beams, cache))


def with_neighbours(part: Any, blocks: Blocks, outside: float = 0.0) -> Any:
    """Puts before and after each block what it meets of the blocks beside it.

    Args:
        part: [batch * blocks, heads, block, channels].
        blocks: of the sentences.
        outside: value where a sentence has no more blocks.

    Returns:
        [batch * blocks, heads, near, channels].
    """
    heads, channels = part.shape[1], part.shape[3]
    part = ops.reshape(part, (-1, blocks.number, heads, blocks.size, channels))
    before = part[:, :-1, :, blocks.size - blocks.before :]  # [batch, blocks - 1, heads, before, channels]
    after = part[:, 1:, :, : blocks.after]  # [batch, blocks - 1, heads, after, channels]
    rest = [[0, 0]] * 3
    before = ops.pad(before, [[0, 0], [1, 0], *rest], constant_values=outside)
    after = ops.pad(after, [[0, 0], [0, 1], *rest], constant_values=outside)
    joined = ops.concatenate([before, part, after], axis=3)  # [batch, blocks, heads, near, channels]
    return ops.reshape(joined, (-1, heads, blocks.near, channels))


def full_weights(weights: Any, blocks: Blocks, length: Any) -> Any:
    """Returns weights of blocks, [batch * blocks, heads, block, near], as [batch, heads, length, length]."""
    heads = weights.shape[1]
    first = ops.arange(blocks.number)[:, None] * blocks.size - blocks.before  # [blocks, 1]
    places = first + ops.arange(blocks.near)[None, :]  # [blocks, near]
    is_at = ops.equal(places[:, :, None], ops.arange(length))  # [blocks, near, length]
    weights = ops.reshape(weights, (-1, blocks.number, heads, blocks.size, blocks.near))
    weights = ops.einsum("bnhqm,nml->bhnql", weights, ops.cast(is_at, weights.dtype))
    return ops.reshape(weights, (-1, heads, blocks.padded, length))[:, :, :length]


def _at_most(most: int, x: Any) -> Any:
    return min(most, x) if isinstance(x, int) else ops.minimum(most, x)
