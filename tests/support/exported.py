"""One tiny translator with random weights, and an export of it."""

from pathlib import Path
from typing import Any
from unittest import mock

import keras

from t2t_revival import DecodeHParams, HParams, Transformer, Translator
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.serving.client import BATCH_SIZE
from t2t_revival.serving.export import export
from t2t_revival.serving.served_translator import ServedTranslator, parse_options

USUAL = DecodeHParams(beam_size=2, extra_length=3)
MAX_LENGTH = 30
HEADS = AlignmentHeads(1, (2,), shifted=True, share=0.6, null=True)


def make_translator(
    vocabulary: Vocabulary,
    options: DecodeHParams = USUAL,
    max_length: int | None = MAX_LENGTH,
    **changes: Any,
) -> Translator:
    """Returns a translator, which has the same weights each time; `changes` are those of its hparams."""
    with mock.patch("tensorflow.random.set_seed"):  # which takes SentencePiece from other graphs
        keras.utils.set_random_seed(3)
    hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, **changes)
    model = Transformer(hparams, vocabulary.size)
    return Translator(model, vocabulary, options, max_length)


def export_tiny(vocabulary_file: Path, folder: Path) -> Path:
    """Exports the usual translator; returns the folder of the version."""
    return export(make_translator(Vocabulary(vocabulary_file)), folder, "tiny", heads=HEADS)


def asking(model: Any, decode_hparams: str = "", batch_size: int = BATCH_SIZE) -> ServedTranslator:
    """Returns what asks an exported model with settings of requests; without any, as it is exported."""
    options, as_exported = parse_options(decode_hparams, None)
    return ServedTranslator(model, options, batch_size=batch_size, as_exported=as_exported)
