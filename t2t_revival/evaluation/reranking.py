"""Reranking of n-best lists: features of candidates by other models, and weights to choose the best by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival import registry
from t2t_revival.checkpoints.directory import OnDamaged
from t2t_revival.checkpoints.selection import NAMES
from t2t_revival.decoding.batching import DecodingProgress, OnProgress
from t2t_revival.decoding.notes import OnNote, ignore_note
from t2t_revival.decoding.resumable import NOT_FINITE
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.errors import LineError, T2TError
from t2t_revival.evaluation.bleu_tuning import Table, Tuned, bleu_statistics, tune
from t2t_revival.evaluation.nbest import NBest
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import checked_json

if TYPE_CHECKING:
    from t2t_revival.decoding.preprocessor import Truncation
    from t2t_revival.decoding.translator import Translator

FIRST, LAST = "score", "length"  # features that need no model
EXTRA_LENGTH = 1000  # tokens, by which a candidate may be longer than an input of another vocabulary
TUNE_AGAIN = "tune weights for these with --tune"


class RescoringModel(NamedTuple):
    """A model that scores candidates.

    Attributes:
        model: its folder and checkpoint.
        reverse: whether it translates back: it scores the source given the candidate.
    """

    model: TrainedModel
    reverse: bool

    @property
    def problem(self) -> str:
        """The name of its problem."""
        return self.model.folder.run.problem

    @property
    def name(self) -> str:
        """The name of its feature: problem, checkpoint and weights."""
        return f"{self.problem}, {self.model.name}"


def open_models(
    folders: Sequence[Path],
    problem: str = "",
    checkpoint: str | None = None,
    on_damaged: OnDamaged | None = None,
) -> list[RescoringModel]:
    """Selects the checkpoints of models that score candidates; vocabularies may differ.

    Args:
        folders: their output_dirs.
        problem: of the model that wrote the n-best lists; "" for the first folder's, without `_rev`.
        checkpoint: "newest", "best" or "average" of each; see `select_checkpoint`.
        on_damaged: see `select_checkpoint`.

    Raises:
        T2TError: there are none, the checkpoint is a file, or a folder holds no trained model, one of other
            languages, or one that is given twice.
    """
    if not folders:
        raise T2TError("there are no models to score with: give their output_dirs")
    if checkpoint not in (None, "", *NAMES):
        raise T2TError(f"--checkpoint={checkpoint} must be {', '.join(NAMES)}: it is of each scorer")
    models = [ModelFolder(path) for path in folders]
    lists = problem or models[0].run.problem.removesuffix(registry.REVERSED)
    opened = []
    for model in models:
        reverse = _is_reverse(model.run.problem, lists, model.path)
        opened.append(RescoringModel(TrainedModel.select(model, checkpoint, on_damaged), reverse))
    names = [one.name for one in opened]
    for folder, name in zip(folders, names, strict=True):
        if names.count(name) > 1:
            raise T2TError(f"{folder}: the model {name} is given twice: leave one out")
    return opened


def problem_of_lists(models: Sequence[RescoringModel]) -> str:
    """Returns the name of a problem with the languages of the n-best lists."""
    if forward := [one.problem for one in models if not one.reverse]:
        return forward[0]
    name = models[0].problem
    back = name.removesuffix(registry.REVERSED)
    return f"{name}{registry.REVERSED}" if back == name else back


def _is_reverse(problem: str, lists: str, folder: Path) -> bool:
    """Returns whether a problem translates back what the problem of the lists translates."""
    languages, of_lists = _languages(problem), _languages(lists)
    if problem.removesuffix(registry.REVERSED) == lists.removesuffix(registry.REVERSED):
        return problem != lists
    if languages in (of_lists, of_lists[::-1]) and len(set(languages)) == 2:
        return languages != of_lists
    raise T2TError(
        f"{folder} has a model of {problem} ({' to '.join(languages)}), and the n-best lists are of {lists} "
        f"({' to '.join(of_lists)}): give models of these two languages, or the --problem of the lists"
    )


def _languages(name: str) -> tuple[str, str]:
    problem = registry.problem(name)
    if not problem.targets_are_text:
        raise T2TError(f"problem {name}: n-best lists of translations are reranked, and it has other outputs")
    return problem.source_lang, problem.target_lang


def log_probs(
    translator: Translator,
    nbest: NBest,
    reverse: bool,
    name: str,
    on_progress: OnProgress | None = None,
    on_note: OnNote = ignore_note,
) -> np.ndarray:
    """Returns the log-probability per token of each candidate, float64 [lines, candidates].

    It is that of the source, given the candidate, for a `reverse` model. The mean over tokens, and not their
    sum, because the first model's scores are divided by a length penalty, too: the weights between them then
    fit long and short lines. Lines of a single candidate have 0.

    Args:
        translator: scores the pairs.
        nbest: the candidates.
        reverse: see `RescoringModel`.
        name: of the file of lists, for errors and notes.
        on_progress: called at the start and after each batch.
        on_note: called with a line on inputs that were cut.

    Raises:
        T2TError: a pair cannot be scored, or its score is not finite.
    """
    places = list(nbest.places())
    texts = [(nbest.sources[line], nbest.candidates[line][rank].text) for line, rank in places]
    found = np.zeros((len(nbest.candidates), nbest.width))
    cut: list[Truncation] = []
    if on_progress:
        on_progress(DecodingProgress(0, len(places), 0.0))
    try:
        pairs = [pair[::-1] if reverse else pair for pair in texts]
        scores = [*translator.iterate_scores(pairs, cut.append, on_progress)]
    except LineError as error:
        raise T2TError(f"{name}, line {places[error.number - 1][0] + 1}: {error.fault}") from error
    if cut:
        lines = len({places[one.number - 1][0] for one in cut})
        on_note(f"warning: {name}: texts of {lines:,} lines are longer than max_length, and were truncated")
    for (line, rank), score in zip(places, scores, strict=True):
        if not math.isfinite(score.log_prob):
            raise T2TError(f"{name}, line {line + 1}: {NOT_FINITE}")
        found[line, rank] = score.log_prob / score.tokens
    return found


def make_table(nbest: NBest, scores: Sequence[np.ndarray]) -> Table:
    """Makes the table of features: the first model's score, those of `log_probs`, and the length.

    The length counts the characters of a candidate, white space left out, for each of the source: it needs
    neither a vocabulary nor spaces between words.
    """
    own, there = np.zeros((2, len(nbest.candidates), nbest.width))
    lengths = np.zeros_like(own)
    for line, (source, candidates) in enumerate(zip(nbest.sources, nbest.candidates, strict=True)):
        count = len(candidates)
        there[line, :count] = 1
        own[line, :count] = [candidate.score for candidate in candidates]
        sizes = [_characters(candidate.text) for candidate in candidates]
        lengths[line, :count] = np.array(sizes) / max(_characters(source), 1)
    return Table(np.stack([own, *scores, lengths], axis=2), there > 0)


def _characters(text: str) -> int:
    return len("".join(text.split()))


def rerank(nbest: NBest, table: Table, weights: np.ndarray) -> list[str]:
    """Returns the candidate of each line with the largest weighted sum of features."""
    best = table.best(weights).tolist()
    return [candidates[rank].text for candidates, rank in zip(nbest.candidates, best, strict=True)]


def tune_weights(nbest: NBest, table: Table, references: Sequence[str], target_lang: str = "") -> Tuned:
    """Tunes the weights for BLEU against references; see `tune`, and `sacrebleu_score` for `target_lang`.

    Raises:
        T2TError: there are no lines, or no line has several candidates.
    """
    if nbest.width < 2:
        raise T2TError("no line has several candidates: there is nothing to choose from")
    texts = [[candidate.text for candidate in candidates] for candidates in nbest.candidates]
    return tune(table, bleu_statistics(texts, references, target_lang))


def feature_names(models: Sequence[RescoringModel]) -> list[str]:
    """Returns the names of the features, in the order of `make_table`."""
    return [FIRST, *(model.name for model in models), LAST]


def save_weights(path: Path, weights: Mapping[str, float], **how: object) -> None:
    """Writes the weights of features by name, and how they were found.

    Raises:
        OSError: the file cannot be written.
    """
    checked_json.save(path, {"weights": dict(weights), **how})


def load_weights(path: Path, names: Sequence[str]) -> np.ndarray:
    """Reads the weights of some features.

    Raises:
        T2TError: the file is missing or corrupt, or has weights of other models.
    """
    try:
        stored = checked_json.load(path, TUNE_AGAIN).get("weights")
    except OSError as error:
        raise T2TError(f"{path}: {error.strerror or error}: {TUNE_AGAIN}, or give --weights") from error
    if not isinstance(stored, dict):
        raise T2TError(f"{path}: no file of weights: {TUNE_AGAIN}")
    for one, other, of in ((names, stored, "it lacks"), (list(stored), names, "it has, beside these,")):
        if missing := [name for name in one if name not in other]:
            raise T2TError(f"{path}: weights of other models: {of} {missing[0]!r}; {TUNE_AGAIN}")
    return check_weights([stored[name] for name in names], names, str(path))


def check_weights(weights: Sequence[object], names: Sequence[str], where: str) -> np.ndarray:
    """Returns weights as an array.

    Raises:
        T2TError: there is not one for each feature, one is no finite number, or all are 0.
    """
    if len(weights) != len(names):
        raise T2TError(
            f"{where}: {len(weights)} weights for {len(names)} features: give one for each of "
            f"{'; '.join(names)}"
        )
    for name, weight in zip(names, weights, strict=True):
        if type(weight) not in (int, float) or not math.isfinite(float(str(weight))):
            raise T2TError(f"{where}: the weight {weight!r} of {name!r} is no finite number: {TUNE_AGAIN}")
    if not any(weights):
        raise T2TError(f"{where}: all weights are 0, so that nothing is better than another: {TUNE_AGAIN}")
    return np.array(weights, np.float64)
