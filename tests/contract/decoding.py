"""The decoding contract: tiny models, lines and options, and how each way of decoding is asked.

An answer is a list for each line of its outputs, best first: objects as `t2t-decoder --output_format=jsonl`
writes them, without what is False. Only what users have is called: `Translator`, commands, exported models.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival import DecodeHParams, LineConstraints, Terminology, Translator
from tests.support import commands
from tests.support.line_corpus import write_lines

FOLDER = Path(__file__).parent
MODELS = PIECES, SUBWORDS, TREES = "pieces", "subwords", "trees"
TOLERANCE = 1e-5  # of scores; from 1 on, relative
DIGITS = 6
JSONL = "--output_format=jsonl"

LINES = (
    "the dog sees 3 houses .",
    "",
    "the child reads a book , and the teacher writes a letter to the man with the red hat today .",  # cut
    "cafe\u0301 nai\u0308ve 👩\u200d👩\u200d👧 日本語",
    "<2fr> the cat sleeps .",
    "one\ttwo \t three",
    "a\u200bb\u00adc\u00a0d\ufeff\u2028e",
    '<b>the {dog}</b> sees &amp; <i id="1">%d houses</i>',
    "dog dog dog dog dog",
    "The dog sleeps. The cat sees 3 houses!",
    "a_b \\u \u2581\ue000 ; <unk> 1",
    " \u3000 ",
)
TREE_LINES = (
    "the dog sees 3 houses .",
    "",
    "the child reads a book , and the teacher writes a letter to the man with the red hat today .",
    "cafe\u0301 nai\u0308ve 👩\u200d👩\u200d👧 日本語",
    "(the) cat [sleeps] {here}",
    "one\ttwo \t three",
    "a\u200bb\u00adc\u00a0d\ufeff\u2028e",
    "Mr. O'Neill can't pay $3.50, can he?",
    "dog",
    '"The dog sleeps," she said; the cat (grey) sees 3 houses!',
    "a_b \\u \u2581\ue000 ; <unk> 1 XX (S )S",
    " \u3000 ",
)
LINES_OF = {PIECES: LINES, SUBWORDS: LINES, TREES: TREE_LINES}


@dataclass(frozen=True)
class Case:
    """A question to a model.

    Attributes:
        options: `--decode_hparams`.
        prefixes: given beginnings of outputs, by line.
        constraints: keys of JSON lines, by line.
        terms: source terms and their translations, `--terminology`.
        targets: outputs to score, by line.
        precision: in which the engine computes.
        ensemble: whether a second model decodes too.
    """

    options: str = ""
    prefixes: dict[int, str] = dataclasses.field(default_factory=dict)
    constraints: dict[int, dict[str, list[str]]] = dataclasses.field(default_factory=dict)
    terms: dict[str, str] = dataclasses.field(default_factory=dict)
    targets: dict[int, str] = dataclasses.field(default_factory=dict)
    precision: str = "float32"
    ensemble: bool = False


def beams(options: str) -> Case:
    return Case(f"{options},return_beams=True")


CASES = {
    PIECES: {
        "usual": Case(),
        "greedy": Case("beam_size=1"),
        "beams": beams("beam_size=4"),
        "wide": beams("beam_size=9,alpha=1.0"),
        "alpha_0": beams("alpha=0,beam_size=3"),
        "alpha_negative": Case("alpha=-1.5"),
        "short": beams("extra_length=0,beam_size=2"),
        "long": Case("extra_length=15,alpha=0.9"),
        "early": beams("early_stopping=True,alpha=1.2,beam_size=3"),
        "small_batches": Case("batch_size=40"),
        "samples": beams("sampling_method=random,sampling_keep_top_k=5,random_seed=8,beam_size=3"),
        "cold_samples": Case("sampling_method=random,sampling_temp=0.4,sampling_keep_top_k=40"),
        "no_repeat": beams("no_repeat_ngram_size=2,beam_size=3"),
        "no_repeat_greedy": Case("no_repeat_ngram_size=1,beam_size=1"),
        "penalty": Case("repetition_penalty=1.3"),
        "at_least": Case("min_length_ratio=0.8"),
        "at_most": beams("max_length_ratio=0.6,beam_size=3"),
        "all_guards": Case(
            "no_repeat_ngram_size=3,repetition_penalty=1.1,min_length_ratio=0.5,max_length_ratio=0.9"
        ),
        "coverage": beams("coverage_penalty=0.4"),
        "mbr": Case("mbr=chrf,candidates=8"),
        "mbr_samples": Case("mbr=bleu,candidates=4,sampling_method=random,sampling_temp=0.4,random_seed=4"),
        "tag": beams("tag=<2de>,beam_size=2"),
        "sentences": Case("split_sentences=True"),
        "markup": Case("markup=html"),
        "placeholders": Case("markup=placeholders+numbers"),
        "markup_of_sentences": Case("markup=html,split_sentences=True"),
        "mbr_tokens": Case("mbr=chrf,candidates=8,alignments=pharaoh,token_scores=True"),
        "alignments": beams("alignments=pharaoh,beam_size=2"),
        "tokens": Case("token_scores=True,alternatives=2"),
        "prefixes": Case(prefixes={0: "der Hund", 3: "\u2581é日", 4: "it", 7: "<b>", 8: "Haus ", 10: ";"}),
        "phrases": Case(
            constraints={
                0: {"constraints": ["Haus", "Hund Katze"]},
                3: {"constraints": ["日本"]},
                4: {"constraints": ["it", "it"]},
                5: {"constraints": ["Stein ist warm", "ein Buch"]},
                8: {"constraints": ["Haus", "Hund"], "avoid": ["ge"]},
            }
        ),
        "avoid": Case(
            "beam_size=3,return_beams=True",
            constraints={0: {"avoid": ["t", "it"]}, 2: {"avoid": ["genge"]}, 4: {"avoid": [";", "g"]}},
        ),
        "terms": Case(terms={"dog": "Hund", "cat": "Katze", "3 houses": "drei Häuser"}),
        "targets": Case(
            "token_scores=True,alignments=pharaoh",
            targets={0: "der Hund sieht 3 Häuser .", 2: "", 3: "日本 é", 4: "die Katze", 8: "Hund Hund"},
        ),
        "ensemble": Case("return_beams=True", ensemble=True),
        "bfloat16": Case(  # of given outputs: those that a search chooses differ by processor
            targets={0: "der Hund sieht 3 Häuser .", 3: "日本 é", 4: "die Katze", 8: "Hund Hund"},
            precision="bfloat16",
        ),
    },
    SUBWORDS: {
        "usual": Case(),
        "greedy": Case("beam_size=1"),
        "wide": beams("beam_size=8,alpha=0.9"),
        "early": Case("early_stopping=True,alpha=0.2,beam_size=6"),
        "samples": beams("sampling_method=random,random_seed=11,beam_size=3"),
        "no_repeat": Case("no_repeat_ngram_size=3,repetition_penalty=1.2"),
        "at_least": beams("min_length_ratio=0.7,max_length_ratio=0.9"),
        "coverage": Case("coverage_penalty=0.2"),
        "mbr": Case("mbr=bleu,candidates=6"),
        "sentences": Case("split_sentences=True"),
        "markup": Case("markup=html+numbers"),
        "alignments": Case("alignments=pharaoh,token_scores=True"),
        "prefixes": Case(prefixes={0: "狗 看", 2: "孩子", 3: "3 ", 9: "。"}),
        "phrases": Case(
            constraints={
                0: {"constraints": ["房子", "狗"]},
                2: {"constraints": ["孩子 读 书"], "avoid": ["火车"]},
                9: {"constraints": ["12"], "avoid": ["看"]},
            }
        ),
        "targets": Case(targets={0: "狗 看 三 座 房子 。", 3: "日本", 8: "dog"}),
    },
    TREES: {
        "usual": Case(),
        "greedy": Case("beam_size=1"),
        "wide": beams("beam_size=8,alpha=1.0"),
        "free": Case("constrained=False,extra_length=8"),
        "short": beams("extra_length=2,beam_size=2"),
        "words": Case("tokenized=True"),
        "early": Case("early_stopping=True,alpha=1.0"),
        "samples": beams("sampling_method=random,random_seed=5,beam_size=2"),
        "targets": Case(
            targets={
                0: "(S (NP (XX the) (XX dog)) (VP (XX sees) (XX 3) (XX houses)) (XX .))",
                8: "(TOP (NP dog))",
            }
        ),
    },
}


def folder_of(model: str) -> Path:
    return FOLDER / "models" / model


def copied(model: str, folder: Path, noise: float = 0.0, seed: int = 0) -> Path:
    """Copies a model, each weight changed by a share of it that is a normal deviate times `noise`."""
    path = shutil.copytree(folder_of(model), folder / f"{model}-{seed}-{noise}") / "model.ckpt-1.npz"
    if noise:
        random = np.random.default_rng(seed)
        with np.load(path) as file:
            arrays = dict(file)
        meta = json.loads(arrays.pop("meta").tobytes())
        del meta["checksums"]
        changed = {
            name: (array * (1 + noise * random.standard_normal(array.shape))).astype(array.dtype)
            for name, array in arrays.items()
        }
        np.savez(path, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8), **changed)
    return path.parent


def asked(model: str, case: Case) -> list[str]:
    """The lines of a case."""
    if case.targets:
        return [LINES_OF[model][number] for number in case.targets]
    clean = [line.replace("\t", " ") for line in LINES_OF[model]]  # files of prefixes have a tab before them
    return clean if case.prefixes else [*LINES_OF[model]]


def by_python(model: str, case: Case, folder: Path, **how: Any) -> list[Any]:
    """Asks `Translator`."""
    translator = Translator.load(
        folder, decode_hparams=case.options, precision=case.precision, on_note=print, **how
    )
    lines, options = asked(model, case), translator.options
    cut: list[Any] = []
    if case.targets:
        scores = translator.score(zip(lines, case.targets.values(), strict=True), cut.append)
        return [[of_score(score, options)] for score in scores]
    more: dict[str, Any] = {}
    if case.prefixes:
        more["prefixes"] = [case.prefixes.get(number, "") for number in range(len(lines))]
    if case.constraints or case.terms:
        more["constraints"] = [constraints_of(case, number, line) for number, line in enumerate(lines)]
    answers = translator.nbest(lines, on_truncation=cut.append, **more)
    numbers = {truncation.number for truncation in cut}
    return [
        [of_output(output, options, number in numbers) for output in outputs]
        for number, outputs in enumerate(answers, start=1)
    ]


def constraints_of(case: Case, number: int, line: str) -> LineConstraints:
    if case.terms:
        return Terminology(case.terms).constraints(line)
    keys = case.constraints.get(number, {})
    return LineConstraints(tuple(keys.get("constraints", ())), tuple(keys.get("avoid", ())))


def of_output(output: Any, options: DecodeHParams, is_cut: bool) -> dict[str, Any]:
    """Converts an output of `Translator`."""
    flags = {name: getattr(output, name) for name in ("repaired", "missing", "present")}
    flags |= {"unaligned": dict(output.unaligned), "truncated": is_cut}
    known = {"text": output.text, "score": output.score, **{name: one for name, one in flags.items() if one}}
    return rounded(known | of_details(output, options))


def of_score(score: Any, options: DecodeHParams) -> dict[str, Any]:
    """Converts the score of a given output."""
    known = {"log_prob": score.log_prob, "num_tokens": score.tokens}
    return rounded(known | of_details(score, options))


def of_details(output: Any, options: DecodeHParams) -> dict[str, Any]:
    if not output.details:
        return {}
    details = output.details
    found: dict[str, Any] = {}
    if options.token_scores:
        found["tokens"] = [token_of(token) for token in details.tokens]
        found["words"] = [[word.text, word.start, word.end, word.log_prob] for word in details.words]
    if options.alignments:
        found["alignment"] = [[*link] for link in details.links]
    return found


def token_of(token: Any) -> list[Any]:
    return [token.piece, token.log_prob, token.word, *(list(other) for other in token.alternatives)]


def by_decoder(model: str, case: Case, folder: Path, scratch: Path, *flags: str) -> list[Any]:
    """Asks `t2t-decoder`, by files; returns answers of JSON lines, or lines of text."""
    given = asked(model, case)
    if case.targets:
        given = [f"{line}\t{text}" for line, text in zip(given, case.targets.values(), strict=True)]
    if case.prefixes:
        given = [f"{line}\t{case.prefixes.get(number, '')}" for number, line in enumerate(given)]
    if case.constraints:
        given = json_lines(given, case)
    source, terms, out = (scratch / name for name in ("in", "terms", "out"))
    write_lines(source, given)
    write_lines(terms, ["\t".join(pair) for pair in case.terms.items()])
    models = f"--output_dir={folder}"
    if case.ensemble:
        models = f"--ensemble={folder},{copied(model, scratch, noise=0.3)}"
    commands.run(
        "t2t-decoder",
        *(models, f"--decode_hparams={case.options}", f"--precision={case.precision}", *flags),
        *(f"--{'score_file' if case.targets else 'decode_from_file'}={source}", f"--decode_to_file={out}"),
        *["--partial_targets"] * bool(case.prefixes),
        *["--input_format=jsonl"] * bool(case.constraints),
        *[f"--terminology={terms}"] * bool(case.terms),
    )
    return read_answers(out) if JSONL in flags else out.read_text("utf-8").split("\n")


def json_lines(lines: Sequence[str], case: Case) -> list[str]:
    return [
        json.dumps({"text": line, **case.constraints.get(number, {})}) for number, line in enumerate(lines)
    ]


def by_query(model: str, case: Case, export_dir: Path, scratch: Path) -> list[Any]:
    """Asks an exported model by `t2t-query-server`."""
    source, out = scratch / "in", scratch / "out"
    write_lines(source, json_lines(asked(model, case), case))
    commands.run(
        "t2t-query-server",
        *(f"--saved_model={export_dir}", f"--decode_hparams={case.options}", JSONL, "--input_format=jsonl"),
        *(f"--decode_from_file={source}", f"--decode_to_file={out}"),
        *["--problem=parse_wsj"] * (model == TREES),
    )
    return read_answers(out)


def read_answers(path: Path) -> list[Any]:
    """Reads the answers in a file of JSON lines."""
    return [
        list(of_json(json.loads(line))) for line in path.read_text("utf-8").removesuffix("\n").split("\n")
    ]


def of_json(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for found in line.pop("nbest", [line]):
        if line.get("truncated"):
            found["truncated"] = True
        if "tokens" in found:
            found["tokens"] = [
                [one["piece"], one["log_prob"], one.get("word", -1)]
                + [[other["piece"], other["log_prob"]] for other in one.get("alternatives", ())]
                for one in found["tokens"]
            ]
            found["words"] = [
                [one["text"], one["start"], one["end"], one["log_prob"]] for one in found["words"]
            ]
        else:
            found.pop("words", None)
        for name in ("source_words", "cut"):  # of which the contract knows nothing
            found.pop(name, None)
        yield {name: value for name, value in found.items() if value is not False}


def rounded(value: Any) -> Any:
    """Rounds the numbers in an answer as JSON lines do."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return round(value, DIGITS) if isinstance(value, float) else value


def differences(expected: Any, found: Any, tolerance: float = TOLERANCE, where: str = "") -> Iterator[str]:
    """Yields what differs: texts at all, numbers by more than the tolerance."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in dict.fromkeys([*expected, *found]):
            yield from differences(expected.get(name), found.get(name), tolerance, f"{where}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, tolerance, f"{where}[{number}]")
    elif isinstance(expected, float) and isinstance(found, float):
        if not math.isclose(expected, found, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{where}: {found} instead of {expected}"
    elif expected != found:
        yield f"{where}: {found!r} instead of {expected!r}"


def expectations(model: str) -> dict[str, list[Any]]:
    """The answers of the contract, by case."""
    path = FOLDER / "decoding" / f"{model}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def main(path: str, *names: str) -> None:
    """Writes the answers of some MODEL/CASE; for a process in which Keras has another backend."""
    pairs = [name.split("/") for name in names]
    answers = {
        f"{model}/{name}": by_python(model, CASES[model][name], folder_of(model)) for model, name in pairs
    }
    Path(path).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
