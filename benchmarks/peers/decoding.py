"""A contestant of decode_speed.py: a process that translates a file when it is told to, and answers in JSON.

Commands, one a line on stdin: "go BATCH" translates all lines in batches of so many sentences, and "one
COUNT" the first COUNT lines, one after the other. An answer is one line on stdout; whatever libraries print
goes to stderr.
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

MOST_TOKENS = 100  # of CTranslate2's outputs; t2t_revival bounds each by its input's length + 50
LEAST_TOKENS = 16  # that t2t_revival counts for a sentence of fewer
Translate = Callable[[list[str], int], list[str]]  # lines, sentences of a batch -> translations


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

    def translate(lines: list[str], batch: int) -> list[str]:
        order = sorted(range(len(lines)), key=lambda index: -len(lines[index]))
        calls = [order[start : start + batch] for start in range(0, len(order), batch)]
        outputs = [""] * len(lines)
        with ThreadPoolExecutor(streams) as pool:
            answers = pool.map(ask, ([lines[index] for index in call] for call in calls))
            for call, answer in zip(calls, answers, strict=True):
                for index, output in zip(call, answer, strict=True):
                    outputs[index] = output
        return outputs

    return translate


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
            beam_size=4,
            length_penalty=0.6,
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--outputs", type=Path, required=True)
    args = parser.parse_args()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines = args.lines.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    translate = ENGINES[args.engine](args.folder, args.streams, **args.options)
    translate(lines[:64], 32)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        command, count = line.split()
        cpu, start = time.process_time(), time.perf_counter()
        if command == "go":
            args.outputs.write_text("\n".join(translate(lines, int(count))) + "\n", encoding="utf-8")
            answer = {"sentences": len(lines)}
        else:
            answer = {"milliseconds": [_milliseconds(translate, text) for text in lines[: int(count)]]}
        answer |= {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        print(json.dumps(answer), file=answers, flush=True)


def _milliseconds(translate: Translate, text: str) -> float:
    start = time.perf_counter()
    translate([text], 1)
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
