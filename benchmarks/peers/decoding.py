"""Contestants of decode_speed.py: processes that translate a file on command and answer in JSON.

Commands, one per line on stdin: "go BATCH" translates all lines in batches of BATCH sentences, "one COUNT"
the first COUNT lines one by one. An answer is one line on stdout; output of libraries goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies

Translate: TypeAlias = Callable[[list[str], int], list[str]]  # lines, sentences of a batch -> translations
EOS = 1
BEAM_SIZE, ALPHA = 4, 0.6
MOST_TOKENS = 100  # of CTranslate2's outputs; t2t_revival's limit is the input's length + 50
LEAST_TOKENS = 16  # that t2t_revival counts per sentence


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


def marian(folder: Path, num_parallel_batches: int) -> Translate:
    """Returns Marian on an exported folder, with one thread per parallel batch."""
    from pymarian import Translator

    translator = Translator(
        config=folder / "decoder.yml", cpu_threads=num_parallel_batches, maxi_batch_sort="src", quiet=True
    )

    def translate(lines: list[str], batch: int) -> list[str]:
        sizes = {"mini-batch": batch, "maxi-batch": len(lines) // batch + 1}  # all lines are sorted together
        return list(translator.translate(lines, **sizes))

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
    "marian": marian,
}


def padded(sentences: list[list[int]]) -> np.ndarray:
    """Pads ids with 0 to int32 [sentences, longest]."""
    rows = np.zeros((len(sentences), max(map(len, sentences))), np.int32)
    for row, ids in enumerate(sentences):
        rows[row, : len(ids)] = ids
    return rows


def in_batches(
    lines: list[str],
    batch: int,
    num_parallel_batches: int,
    ask: Callable[[list[str]], list[str]],
) -> list[str]:
    """Translates batches of lines of similar lengths, longest first, in parallel threads.

    Args:
        lines: lines to translate.
        batch: sentences per batch.
        num_parallel_batches: number of threads.
        ask: translates the lines of one batch.
    """
    order = sorted(range(len(lines)), key=lambda index: -len(lines[index]))
    calls = [order[start : start + batch] for start in range(0, len(order), batch)]

    def answer(call: list[int]) -> list[str]:
        return ask([lines[index] for index in call])

    with ThreadPoolExecutor(num_parallel_batches) as pool:
        sorted_outputs = [output for outputs in pool.map(answer, calls) for output in outputs]
    places = {index: place for place, index in enumerate(order)}
    return [sorted_outputs[places[index]] for index in range(len(lines))]


def serve() -> None:
    """Builds the engine named by --engine, then runs the commands on stdin."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--num_parallel_batches", type=int, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--outputs", type=Path, required=True)
    args = parser.parse_args()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines = args.lines.read_text(encoding="utf-8").split("\n")
    if not lines[-1]:
        lines.pop()  # after the last line's end
    translate = ENGINES[args.engine](args.folder, args.num_parallel_batches, **args.options)
    translate(lines[:64], 32)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        command, count = line.split()
        answer: dict[str, Any] = {}
        cpu, start = time.process_time(), time.perf_counter()
        if command == "go":
            args.outputs.write_text("\n".join(translate(lines, int(count))) + "\n", encoding="utf-8")
            answer["sentences"] = len(lines)
        else:
            answer["milliseconds"] = [_milliseconds(translate, text) for text in lines[: int(count)]]
        answer.update(
            seconds=time.perf_counter() - start,
            cpu_seconds=time.process_time() - cpu,
            peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )
        print(json.dumps(answer), file=answers, flush=True)


def _milliseconds(translate: Translate, text: str) -> float:
    start = time.perf_counter()
    translate([text], 1)
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    serve()
