"""Contestants of decode_speed.py that have this project's vocabulary: text in, text out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from translating import ALPHA, BEAM_SIZE, MOST_TOKENS, in_batches, serve

if TYPE_CHECKING:
    from translating import Translate

LEAST_TOKENS = 16  # that t2t_revival counts for a sentence of fewer


def decoder(folder: Path, streams: int) -> Translate:
    """`t2t-decoder`'s `Translator` on an output_dir."""
    import dataclasses

    _threads(streams)
    from t2t_revival.decoding.translator import Translator

    translator = Translator.load(folder, streams=streams)

    def translate(lines: list[str], batch: int) -> list[str]:
        tokens = sum(max(len(ids) + 1, LEAST_TOKENS) for ids in translator.vocabulary.encode_batch(lines))
        size = max(batch * tokens // len(lines), 1)  # t2t-decoder counts tokens: so many as `batch` sentences
        translator.options = dataclasses.replace(translator.options, batch_size=size)
        return translator.translate(lines)

    return translate


def saved_model(folder: Path, streams: int) -> Translate:
    """An exported folder, asked by as many threads as there are streams."""
    _threads(streams)
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]

    def ask(lines: list[str]) -> list[str]:
        return [row[0].decode() for row in signature(inputs=tf.constant(lines))["outputs"].numpy()]

    return lambda lines, batch: in_batches(lines, batch, streams, ask)


def ctranslate2(folder: Path, streams: int, compute_type: str) -> Translate:
    """A CTranslate2 model, with a worker of one thread for each stream; text in, text out."""
    import ctranslate2 as engine
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.spm"))
    translator = engine.Translator(
        str(folder), compute_type=compute_type, inter_threads=streams, intra_threads=1
    )

    def translate(lines: list[str], batch: int) -> list[str]:
        found = translator.translate_batch(
            pieces.encode(lines, out_type=str),
            beam_size=BEAM_SIZE,
            length_penalty=ALPHA,
            max_decoding_length=MOST_TOKENS,
            max_batch_size=batch,
        )
        return pieces.decode([result.hypotheses[0] for result in found])

    return translate


def _threads(streams: int) -> None:
    """One thread for each operation; as many operations side by side as there are streams."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(streams)


ENGINES: dict[str, Callable[..., Translate]] = {
    "decoder": decoder,
    "saved_model": saved_model,
    "ctranslate2": ctranslate2,
}

if __name__ == "__main__":
    serve(ENGINES)
