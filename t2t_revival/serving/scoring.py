"""Scores and details of given outputs, as TensorFlow ops from strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.decoding.details import EOS_NAME
from t2t_revival.decoding.options import MAX_ALTERNATIVES
from t2t_revival.serving.call_options import between

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.search.search_graph import SearchGraph

SCORING = [
    tf.TensorSpec([None], tf.string, name="inputs"),
    tf.TensorSpec([None], tf.string, name="targets"),
    tf.TensorSpec(None, tf.int32, name="alternatives"),
]


def score_outputs(
    graph: SearchGraph,
    vocabularies: Vocabularies,
    heads: AlignmentHeads | None,
    sources: tf.Tensor,
    targets: tf.Tensor,
    alternatives: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Computes what `make_details` needs, for clients that have neither the model nor its vocabularies.

    Args:
        graph: of the model.
        vocabularies: of source and target.
        heads: align words; `None` for no attention.
        sources: int32 [batch, source]; each ends with EOS and is padded with 0.
        targets: int32 [batch, target], likewise.
        alternatives: the number of alternatives of each token, int32, of any shape: the largest counts.

    Returns:
        "log_probs", float32 [batch], the sums over tokens. Of each token, padded with "" and 0: "tokens",
        string [batch, target]; "token_log_probs"; "token_ends", the number of characters of the text up to
        its end, int32; "alternatives", string [batch, target, k]; "alternative_log_probs". "target_texts" and
        "source_texts", string [batch], are the texts to which ends belong; "source_tokens" and
        "source_token_ends" are [batch, source]. With heads, "attention", float32 [batch, target, source], are
        the weights by which a token is aligned, and "alignment_rule", float32 [batch, 2], the share of links,
        and 1 where the source's end stands for no link.
    """
    most = MAX_ALTERNATIVES
    with tf.control_dependencies([between("alternatives", alternatives, 0, most, f"0 and {most}")]):
        count = tf.reduce_max(tf.reshape(alternatives, [-1]))
    log_probs, others, other_log_probs, attention = graph.annotate(sources, targets, count, heads)
    is_token = targets != PAD
    log_probs = tf.where(is_token, log_probs, 0.0)
    source_side, target_side = vocabularies
    target_names = source_names = _names(target_side)
    if source_side is not target_side:
        source_names = _names(source_side)
    is_source = sources != PAD
    source_texts, source_ends = _ends(source_side, sources)
    target_texts, target_ends = _ends(target_side, targets)
    found = {
        "log_probs": tf.reduce_sum(log_probs, axis=1),
        "tokens": tf.gather(target_names, targets),
        "token_log_probs": log_probs,
        "token_ends": tf.where(is_token, target_ends, 0),
        "alternatives": tf.where(is_token[:, :, None], tf.gather(target_names, others), ""),
        "alternative_log_probs": tf.where(is_token[:, :, None], other_log_probs, 0.0),
        "target_texts": target_texts,
        "source_tokens": tf.gather(source_names, sources),
        "source_token_ends": tf.where(is_source, source_ends, 0),
        "source_texts": source_texts,
    }
    if heads is None:
        return found
    rule = tf.constant([heads.share, float(heads.null)])
    rules = tf.tile(rule[None], [tf.shape(attention)[0], 1])
    return found | {"attention": attention, "alignment_rule": rules}


def _names(vocabulary: TextEncoder) -> tf.Tensor:
    """Returns the name of each id, "" for padding, string [vocab]."""
    special = {PAD: "", EOS: EOS_NAME}
    return tf.constant([special.get(token, piece) for token, piece in enumerate(vocabulary.pieces)])


def _ends(vocabulary: TextEncoder, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the texts of ids, string [batch], and their lengths up to each id, int32 [batch, length]."""
    batch, length = tf.shape(ids)[0], tf.shape(ids)[1]
    places = tf.range(length)
    beginnings = tf.where(places[None] <= places[:, None], ids[:, None], PAD)  # [batch, length, length]
    flat = tf.RaggedTensor.from_tensor(tf.reshape(beginnings, [batch * length, length]))
    texts = tf.reshape(vocabulary.graph.decode(flat), [batch, length])
    return texts[:, -1], tf.strings.length(texts, unit="UTF8_CHAR")
