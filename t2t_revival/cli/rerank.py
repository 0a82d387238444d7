"""`t2t-rerank`: chooses among a model's outputs by the scores of other models, with tuned weights."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import flags

from t2t_revival import registry, t2t_names
from t2t_revival.cli.support import command, problem_flags, run_flags, tensorflow_setup
from t2t_revival.cli.support.messages import ProgressBar, say, warn_of_corruption
from t2t_revival.cli.support.text_files import (
    STANDARD_STREAM,
    check_one_standard_input,
    check_outputs,
    name_of,
    named_files,
    output_path,
    output_to,
    read_flag,
)
from t2t_revival.decoding.outputs import ResultFormat, to_bytes
from t2t_revival.decoding.trained_models import load_translator
from t2t_revival.errors import T2TError
from t2t_revival.evaluation import reranking
from t2t_revival.evaluation.bleu import Bleu, chrf_score, sacrebleu_score
from t2t_revival.evaluation.bleu_tuning import Table
from t2t_revival.evaluation.decoded import metric_for
from t2t_revival.evaluation.nbest import NBest
from t2t_revival.evaluation.reranking import RescoringModel
from t2t_revival.hints import command_line
from t2t_revival.training.checkpoints.selection import taking_next
from t2t_revival.utils.files import check_writable, is_special

USAGE = """
t2t-rerank --tune --nbest=dev.nbest --source=dev.en --reference=dev.de --scorers=DIR1,DIR2
t2t-rerank --nbest=test.nbest --source=test.en --scorers=DIR1,DIR2 --output_file=test.de

Of the outputs of each line, writes the best one by a weighted sum of the first model's score, of each
scorer's log-probability per token, and of the length. The n-best lists are those of t2t-decoder
--decode_hparams="return_beams=True,write_beam_scores=True". Scorers are models of the same languages, with
any vocabulary: of the same direction, of the other one (--problem=PROBLEM_rev), which score the source given
the output, or right to left (--hparams=reverse_target=True).

--tune searches for the weights with the largest BLEU, and writes them to --weights_file.
"""


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-rerank."""
    values = command.new_flags()
    problem_flags.define_names(values)
    command.define(
        values,
        None,
        nbest="The n-best lists, output TAB score TAB output TAB score on a line; - is the standard input.",
        source="The text that was decoded.",
        reference="Its references, for --tune.",
        output_file="File for the outputs; by default, or with -, the standard output. With --tune there are "
        "none unless it is given.",
        checkpoint="newest, best or average of each scorer; by default as t2t-decoder chooses.",
        weights_file="File of the weights, written by --tune; by default rerank.json.",
    )
    command.define(
        values,
        [],
        scorers="Folders of the models that score the outputs.",
        weights="Weights of the first score, of each scorer and of the length, instead of --weights_file.",
    )
    command.define(values, False, tune="Search for the weights with the largest BLEU.")
    values[
        "problem"
    ].help = (
        "Problem of the model that wrote the n-best lists; by default that of the first scorer, without _rev."
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _rerank, argv)


def _rerank(values: flags.FlagValues) -> None:
    _check_flags(values)
    nbest, references = _read(values)
    weights_file = _weights_file(values)
    _check_files(values, weights_file)

    def scored() -> tuple[list[RescoringModel], np.ndarray | None, list[np.ndarray]]:
        models = _open(values)
        weights = None if values.tune else _weights(values, reranking.feature_names(models), weights_file)
        return models, weights, _scores(values, models, nbest)

    models, weights, scores = taking_next(scored, values.checkpoint, warn_of_corruption)
    names, table = reranking.feature_names(models), reranking.make_table(nbest, scores)
    if weights is None:
        problem = registry.problem(reranking.problem_of_lists(models))
        target_lang = getattr(problem, "target_lang", "")
        weights = _tune(values, nbest, table, references, names, weights_file, target_lang)
    if not values.tune or values.output_file:
        _write(values, reranking.rerank(nbest, table, weights), models)


def _check_flags(values: flags.FlagValues) -> None:
    if values.tune and not values.reference:
        raise T2TError("--reference=FILE is missing: --tune needs the references of the text")
    if values.tune and values.output_file == STANDARD_STREAM:
        raise T2TError("--output_file=-: the weights' report goes to the standard output; name a file")
    if values.reference and not values.tune:
        raise T2TError("--reference has no effect without --tune: score the outputs with t2t-bleu")
    for other in ("tune", "weights_file"):
        if values.weights and values[other].value:
            raise T2TError(f"--weights and --{other} cannot be combined: give one of them")
    if not values.scorers:
        raise T2TError("--scorers is missing: give the output_dirs of models, separated by commas")
    check_one_standard_input(nbest=values.nbest, source=values.source, reference=values.reference)


def _weights_file(values: flags.FlagValues) -> Path:
    return Path(values.weights_file or "rerank.json").expanduser()


def _check_files(values: flags.FlagValues, weights_file: Path) -> None:
    """Checks that no output overwrites an input."""
    inputs = named_files(values, "nbest", "source", "reference")
    outputs: dict[str, str | Path] = {**named_files(values, "output_file")}
    if values.tune:
        outputs[f"--weights_file={weights_file}"] = weights_file
    else:
        inputs[f"--weights_file={weights_file}"] = str(weights_file)
        outputs = outputs or {"": STANDARD_STREAM}
    check_outputs(inputs, outputs)
    for file in (weights_file if values.tune else None, output_path(values.output_file)):
        if file and not is_special(file):
            check_writable(file.parent)


def _read(values: flags.FlagValues) -> tuple[NBest, list[str]]:
    """Reads the n-best lists and, with `--tune`, as many references."""
    lines, sources = read_flag(values, "nbest"), read_flag(values, "source")
    name = name_of(values.nbest)
    nbest = NBest.parse(lines, sources, name)
    if not lines:
        raise T2TError(f"{name}: the file is empty")
    references = read_flag(values, "reference") if values.tune else []
    if values.tune and len(references) != len(lines):
        raise T2TError(
            f"{name_of(values.reference)} has {len(references)} lines, and {name} has {len(lines)}: give one "
            "reference for each"
        )
    return nbest, references


def _open(values: flags.FlagValues) -> list[RescoringModel]:
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    folders = [
        run_flags.refuse_t2t(Path(name).expanduser(), values, "scorers") for name in values.scorers if name
    ]
    problem = t2t_names.registered_name(values.problem or "", registry.list_problems())
    return reranking.open_models(folders, problem, values.checkpoint, warn_of_corruption)


def _weights(values: flags.FlagValues, names: Sequence[str], weights_file: Path) -> np.ndarray:
    if not values.weights:
        return reranking.load_weights(weights_file, names)
    where = f"--weights={','.join(values.weights)}"
    try:
        return reranking.check_weights([float(weight) for weight in values.weights], names, where)
    except ValueError as error:
        raise T2TError(f"{where}: give numbers, separated by commas ({error})") from error


def _scores(values: flags.FlagValues, models: Sequence[RescoringModel], nbest: NBest) -> list[np.ndarray]:
    """Returns the scores of each model, one model in memory at a time."""
    tensorflow_setup.load_tensorflow_alone(values)
    parallel, found = tensorflow_setup.num_parallel_batches(), []
    for one in models:
        what = "the source given the output" if one.reverse else "the output given the source"
        checkpoint = one.model.checkpoint
        say(f"scoring {what} with {checkpoint.path} (step {checkpoint.step:,}, {one.problem})")
        options = f"extra_length={reranking.EXTRA_LENGTH}"
        translator = load_translator([one.model], options, parallel)
        with ProgressBar("outputs") as bar:
            name = name_of(values.nbest)
            found.append(reranking.log_probs(translator, nbest, one.reverse, name, bar.show_decoding, say))
    return found


def _tune(
    values: flags.FlagValues,
    nbest: NBest,
    table: Table,
    references: list[str],
    names: Sequence[str],
    weights_file: Path,
    target_lang: str,
) -> np.ndarray:
    """Tunes the weights, writes them, and prints what they are worth."""
    weights = reranking.tune_weights(nbest, table, references, target_lang).weights
    firsts = [candidates[0].text for candidates in nbest.candidates]
    chosen = reranking.rerank(nbest, table, weights)
    first, tuned = (sacrebleu_score(lines, references, target_lang=target_lang) for lines in (firsts, chosen))
    by_name = dict(zip(names, weights.tolist(), strict=True))
    how = {
        "bleu_before": round(first.score, 2),
        "bleu_after": round(tuned.score, 2),
        "lines": len(references),
    }
    reranking.save_weights(weights_file, by_name, **how, signature=tuned.signature)
    folders = [f"{folder}, " for folder in values.scorers if folder]
    for folder, (name, weight) in zip(["", *folders, ""], by_name.items(), strict=True):
        print(f"{weight:8.4f}  {folder}{name}")
    print(_gain(first, tuned, len(references)))
    before, after = (chrf_score(lines, references).score for lines in (firsts, chosen))
    print(f"chrF2 {before:.2f} before, {after:.2f} after; {tuned.signature}")
    following = command_line(
        "t2t-rerank",
        nbest="NBEST",
        source="SOURCE",
        scorers=values.scorers,
        problem=values.problem,
        t2t_usr_dir=values.t2t_usr_dir,
        checkpoint=values.checkpoint,
        weights_file=weights_file,
        output_file="OUTPUTS",
    )
    print(f"weights  {weights_file}\nnext: {following}")
    return weights


def _gain(first: Bleu, tuned: Bleu, lines: int) -> str:
    note = f"; {tuned.note}" if tuned.note else ""
    return f"BLEU {first.score:.2f} before, {tuned.score:.2f} after, on the {lines:,} lines of tuning{note}"


def _write(values: flags.FlagValues, outputs: list[str], models: Sequence[RescoringModel]) -> None:
    path = output_path(values.output_file)
    form: ResultFormat[str] = ResultFormat(lambda text: to_bytes([text]), str, str)
    with output_to(path) as output:
        output.start({"output": "reranked"}, len(outputs), form)
        output.add(dict(enumerate(outputs)))
    if path is None or is_special(path):
        return
    say(f"outputs  {path}")
    problem = registry.problem(reranking.problem_of_lists(models))
    if metric := metric_for(problem):
        say(f"next: {metric.command(str(path), 'REFERENCE')}")


if __name__ == "__main__":
    sys.exit(main())
