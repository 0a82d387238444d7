"""Contestants of decode_speed.py that have this project's vocabulary: text in, text out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translating import ALPHA, BEAM_SIZE, EOS, MOST_TOKENS, in_batches, padded, serve

if TYPE_CHECKING:
    from translating import Translate

    from t2t_revival.data.vocabulary import Vocabularies

LEAST_TOKENS = 16  # minimum that t2t_revival counts per sentence


def decoder(
    folder: Path,
    num_parallel_batches: int,
    engine: str = "tensorflow",
    precision: str = "float32",
    decode_hparams: str = "",
) -> Translate:
    """Returns `t2t-decoder`'s `Translator` for an output_dir."""
    import dataclasses

    from t2t_revival import Translator

    if engine == "tensorflow":
        _threads(num_parallel_batches)
    translator = Translator.load(
        folder,
        decode_hparams=decode_hparams,
        num_parallel_batches=num_parallel_batches,
        engine=engine,
        precision=precision,
    )

    def translate(lines: list[str], batch: int) -> list[str]:
        tokens = sum(max(len(ids) + 1, LEAST_TOKENS) for ids in translator.vocabulary.encode_batch(lines))
        size = max(batch * tokens // len(lines), 1)  # t2t-decoder counts tokens
        translator.options = dataclasses.replace(translator.options, batch_size=size)
        return translator.translate(lines)

    return translate


def saved_model(folder: Path, num_parallel_batches: int) -> Translate:
    """Returns an exported SavedModel, called by one thread per parallel batch."""
    _threads(num_parallel_batches)
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]

    def ask(lines: list[str]) -> list[str]:
        return [row[0].decode() for row in signature(inputs=tf.constant(lines))["outputs"].numpy()]

    return lambda lines, batch: in_batches(lines, batch, num_parallel_batches, ask)


def litert(folder: Path, num_parallel_batches: int) -> Translate:
    """Returns an exported flatbuffer, with one single-threaded interpreter per parallel batch."""
    from queue import SimpleQueue

    from ai_edge_litert.interpreter import Interpreter

    inputs, targets = vocabularies(folder)
    idle: SimpleQueue[Any] = SimpleQueue()
    for _ in range(num_parallel_batches):
        idle.put(Interpreter(str(folder / "model.tflite"), num_threads=1).get_signature_runner())

    def ask(lines: list[str]) -> list[str]:
        run = idle.get()
        try:
            found = run(inputs=padded([[*ids, EOS] for ids in inputs.encode_batch(lines)]))["outputs"][:, 0]
        finally:
            idle.put(run)
        return [targets.decode(row) for row in found.tolist()]

    return lambda lines, batch: in_batches(lines, batch, num_parallel_batches, ask)


def ctranslate2(
    folder: Path,
    num_parallel_batches: int,
    compute_type: str,
    use_vmap: bool = False,
    beam_size: int = BEAM_SIZE,
) -> Translate:
    """Returns a CTranslate2 model with one single-threaded worker per parallel batch."""
    import ctranslate2 as engine

    inputs, targets = vocabularies(folder)
    ids_of = {piece: token for token, piece in enumerate(targets.pieces)}
    translator = engine.Translator(
        str(folder), compute_type=compute_type, inter_threads=num_parallel_batches, intra_threads=1
    )

    def translate(lines: list[str], batch: int) -> list[str]:
        found = translator.translate_batch(
            [[inputs.pieces[token] for token in ids] for ids in inputs.encode_batch(lines)],
            beam_size=beam_size,
            length_penalty=ALPHA,
            max_decoding_length=MOST_TOKENS,
            max_batch_size=batch,
            use_vmap=use_vmap,
        )
        return [targets.decode(ids_of[piece] for piece in result.hypotheses[0]) for result in found]

    return translate


def vocabularies(folder: Path) -> Vocabularies:
    """Returns the vocabularies of source and target, SentencePiece's or T2T's, that an export has."""
    from t2t_revival.data.vocabulary import Vocabularies

    return Vocabularies.open(sorted(folder.glob("vocabulary.*")))


def _threads(num_parallel_batches: int) -> None:
    """Sets one thread per operation, and one operation per parallel batch."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(num_parallel_batches)


ENGINES: dict[str, Callable[..., Translate]] = {
    "decoder": decoder,
    "saved_model": saved_model,
    "litert": litert,
    "ctranslate2": ctranslate2,
}

if __name__ == "__main__":
    serve(ENGINES)
