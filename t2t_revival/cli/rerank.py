"""`t2t-rerank`: chooses among a model's outputs by the scores of other models, with tuned weights.

t2t-rerank --tune --nbest=dev.nbest --source=dev.en --reference=dev.de --scorers=DIR1,DIR2
t2t-rerank --nbest=test.nbest --source=test.en --scorers=DIR1,DIR2 --output_file=test.de

Of the outputs of each line, writes the best one by a weighted sum of the first model's score, of each
scorer's log-probability per token, and of the length. The n-best lists are those of t2t-decoder
--decode_hparams="return_beams=True,write_beam_scores=True". Scorers are models of the same languages, with
any vocabulary: of the same direction, of the other one (--problem=PROBLEM_rev), which score the source given
the output, or right to left (--hparams=reverse_target=True).

--tune searches for the weights with the largest BLEU, and writes them to --weights_file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2t_revival import registry, t2t_names
from t2t_revival.addons.rerank import reranking
from t2t_revival.addons.rerank.bleu_tuning import Table, bleu_statistics, tune
from t2t_revival.addons.rerank.reranking import NBest, RescoringModel
from t2t_revival.checkpoints.selection import taking_next
from t2t_revival.cli.support import tensorflow_setup, text_files
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import READ, WRITTEN, flag
from t2t_revival.cli.support.messages import ProgressBar, say, warn_of_corruption
from t2t_revival.cli.support.problem_flags import ProblemFlags
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.decoding.trained_models import load_translator
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation.decoded import scoring_command
from t2t_revival.metrics.bleu import chrf_score, sacrebleu_score
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import check_writable, is_special


@dataclass(frozen=True)
class RerankFlags(ProblemFlags):
    """The flags of t2t-rerank."""

    exclusive = (("weights", "tune"), ("weights", "weights_file"))
    needs = (("tune", "reference"), ("reference", "tune"))
    problem: str | None = flag(
        None,
        "Problem of the model that wrote the n-best lists; by default that of the first scorer, without "
        "_rev.",
    )
    nbest: str = flag(
        "",
        "The n-best lists, output TAB score TAB output TAB score on a line; - is the standard input.",
        missing="=FILE is missing",
        file=READ,
    )
    source: str = flag("", "The text that was decoded.", missing="=FILE is missing", file=READ)
    reference: str = flag("", "Its references, for --tune.", file=READ)
    output_file: str = flag(
        "",
        "File for the outputs; by default, or with -, the standard output. With --tune there are none unless "
        "it is given.",
        file=WRITTEN,
    )
    checkpoint: str | None = flag(
        None, "newest, best or average of each scorer; by default as t2t-decoder chooses."
    )
    weights_file: str = flag("", "File of the weights, written by --tune; by default rerank.json.")
    scorers: tuple[str, ...] = flag(
        (),
        "Folders of the models that score the outputs.",
        missing=" is missing: give the output_dirs of models, separated by commas",
    )
    weights: tuple[str, ...] = flag(
        (), "Weights of the first score, of each scorer and of the length, instead of --weights_file."
    )
    tune: bool = flag(False, "Search for the weights with the largest BLEU.")


def _rerank(flags: RerankFlags) -> None:
    if flags.tune and flags.output_file == text_files.STANDARD_STREAM:
        raise T2TError("--output_file=-: the weights' report goes to the standard output; name a file")
    nbest, references = _read(flags)
    weights_file = Path(flags.weights_file or "rerank.json").expanduser()
    _check_weights_file(flags, weights_file)

    def scored() -> tuple[list[RescoringModel], np.ndarray | None, list[np.ndarray]]:
        models = _open(flags)
        weights = None if flags.tune else _weights(flags, reranking.feature_names(models), weights_file)
        return models, weights, _scores(flags, models, nbest)

    models, weights, scores = taking_next(scored, flags.checkpoint, warn_of_corruption)
    names, table = reranking.feature_names(models), reranking.make_table(nbest, scores)
    if weights is None:
        problem = registry.problem(reranking.problem_of_lists(models))
        weights = _tune(flags, nbest, table, references, names, weights_file, problem.target_lang)
    if not flags.tune or flags.output_file:
        _write(flags, reranking.rerank(nbest, table, weights), models)


def _check_weights_file(flags: RerankFlags, weights_file: Path) -> None:
    """Checks that the file of weights is not another one, and that outputs can be written."""
    named = {f"--weights_file={weights_file}": weights_file}
    if flags.tune:
        text_files.check_outputs(flags.files(READ) | flags.files(WRITTEN), named)
    else:
        text_files.check_outputs(named, flags.files(WRITTEN) or {"": text_files.STANDARD_STREAM})
    for file in (weights_file if flags.tune else None, text_files.output_path(flags.output_file)):
        if file and not is_special(file):
            check_writable(file.parent)


def _read(flags: RerankFlags) -> tuple[NBest, list[str]]:
    """Reads the n-best lists and, with `--tune`, as many references."""
    lines, sources = (
        text_files.read_lines(flags.nbest, "nbest"),
        text_files.read_lines(flags.source, "source"),
    )
    name = text_files.name_of(flags.nbest)
    nbest = NBest.parse(lines, sources, name)
    if not lines:
        raise T2TError(f"{name}: the file is empty")
    references = text_files.read_lines(flags.reference, "reference") if flags.tune else []
    if flags.tune and len(references) != len(lines):
        raise T2TError(
            f"{text_files.name_of(flags.reference)} has {len(references)} lines, and {name} has "
            f"{len(lines)}: give one reference for each"
        )
    if flags.tune and nbest.width < 2:
        raise T2TError("no line has several candidates: there is nothing to choose from")
    return nbest, references


def _open(flags: RerankFlags) -> list[RescoringModel]:
    flags.import_usr_dir()
    folders = [flags.refuse_t2t(Path(name).expanduser(), "scorers") for name in flags.scorers if name]
    problem = t2t_names.registered_name(flags.problem or "", registry.list_problems())
    return reranking.open_models(folders, problem, flags.checkpoint, warn_of_corruption)


def _weights(flags: RerankFlags, names: Sequence[str], weights_file: Path) -> np.ndarray:
    if not flags.weights:
        return reranking.load_weights(weights_file, names)
    where = f"--weights={','.join(flags.weights)}"
    try:
        return reranking.check_weights([float(weight) for weight in flags.weights], names, where)
    except ValueError as error:
        raise T2TError(f"{where}: give numbers, separated by commas ({error})") from error


def _scores(flags: RerankFlags, models: Sequence[RescoringModel], nbest: NBest) -> list[np.ndarray]:
    """Returns the scores of each model, one model in memory at a time."""
    tensorflow_setup.load_tensorflow_alone()
    parallel, found = tensorflow_setup.num_parallel_batches(), []
    for one in models:
        what = "the source given the output" if one.reverse else "the output given the source"
        checkpoint = one.model.checkpoint
        say(f"scoring {what} with {checkpoint.path} (step {checkpoint.step:,}, {one.problem})")
        options = f"extra_length={reranking.EXTRA_LENGTH}"
        translator = load_translator([one.model], options, parallel)
        with ProgressBar("outputs") as bar:
            name = text_files.name_of(flags.nbest)
            found.append(reranking.log_probs(translator, nbest, one.reverse, name, bar.show_decoding, say))
    return found


def _tune(
    flags: RerankFlags,
    nbest: NBest,
    table: Table,
    references: list[str],
    names: Sequence[str],
    weights_file: Path,
    target_lang: str,
) -> np.ndarray:
    """Tunes the weights, writes them, and prints what they are worth."""
    texts = [[candidate.text for candidate in candidates] for candidates in nbest.candidates]
    firsts = [candidates[0] for candidates in texts]
    weights = tune(table, bleu_statistics(texts, references, target_lang))
    chosen = reranking.rerank(nbest, table, weights)
    first, tuned = (sacrebleu_score(lines, references, target_lang=target_lang) for lines in (firsts, chosen))
    by_name = dict(zip(names, weights.tolist(), strict=True))
    how = {
        "bleu_before": round(first.score, 2),
        "bleu_after": round(tuned.score, 2),
        "lines": len(references),
    }
    checked_json.save(weights_file, {"weights": by_name, **how, "signature": tuned.signature})
    folders = [f"{folder}, " for folder in flags.scorers if folder]
    for folder, (name, weight) in zip(["", *folders, ""], by_name.items(), strict=True):
        print(f"{weight:8.4f}  {folder}{name}")
    note = f"; {tuned.note}" if tuned.note else ""
    gain = f"BLEU {first.score:.2f} before, {tuned.score:.2f} after"
    print(f"{gain}, on the {len(references):,} lines of tuning{note}")
    before, after = (chrf_score(lines, references).score for lines in (firsts, chosen))
    print(f"chrF2 {before:.2f} before, {after:.2f} after; {tuned.signature}")
    following = CommandLine(
        "t2t-rerank",
        nbest="NBEST",
        source="SOURCE",
        scorers=flags.scorers,
        problem=flags.problem,
        t2t_usr_dir=flags.t2t_usr_dir,
        checkpoint=flags.checkpoint,
        weights_file=weights_file,
        output_file="OUTPUTS",
    )
    print(f"weights  {weights_file}\nnext: {following}")
    return weights


def _write(flags: RerankFlags, outputs: list[str], models: Sequence[RescoringModel]) -> None:
    path = text_files.output_path(flags.output_file)
    with text_files.output_to(path) as output:
        output.start({"output": "reranked"}, len(outputs), resumable=False)
        for text in outputs:
            output.write(to_bytes([text]))
    if path is None or is_special(path):
        return
    say(f"outputs  {path}")
    problem = registry.problem(reranking.problem_of_lists(models))
    if scoring := scoring_command(problem, path):
        say(f"next: {scoring}")


main = Command(RerankFlags, _rerank, __doc__)
