"""Reranking of n-best lists: features of candidates by other models, and weights to choose the best by.

The lists are those of `t2t-decoder --decode_hparams=return_beams=True,write_beam_scores=True`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival import registry
from t2t_revival.addons.rerank.bleu_tuning import Table
from t2t_revival.checkpoints.directory import OnDamaged
from t2t_revival.checkpoints.selection import NAMES
from t2t_revival.decoding.batching import DecodingProgress, OnProgress
from t2t_revival.decoding.notes import OnNote, ignore_note
from t2t_revival.decoding.resumable import NOT_FINITE
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.errors import LineError, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import checked_json
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from t2t_revival.decoding.preprocessor import Truncation
    from t2t_revival.decoding.translator import Translator

FIRST, LAST = "score", "length"  # features that need no model
EXTRA_LENGTH = 1000  # tokens, by which a candidate may be longer than an input of another vocabulary
TUNE_AGAIN = "tune weights for these with --tune"
HOW = 'write it with t2t-decoder --decode_hparams="return_beams=True,write_beam_scores=True"'


class Candidate(NamedTuple):
    """An output of a line, and the score that the first model gave it."""

    text: str
    score: float


class NBest(NamedTuple):
    """The candidates of each line of a text.

    Attributes:
        sources: the lines.
        candidates: of each line, best first by the first model; one empty candidate of a blank line.
    """

    sources: Sequence[str]
    candidates: Sequence[list[Candidate]]

    @classmethod
    def parse(cls, lines: Sequence[str], sources: Sequence[str], name: str) -> NBest:
        """Parses a file of n-best lists.

        Outputs that the search did not finish, which are empty and have the score -inf, are left out, and so
        are empty ones beside others.

        Args:
            lines: of the file.
            sources: the text that was decoded.
            name: of the file, for errors.

        Raises:
            T2TError: the numbers of lines differ, a line is no list of outputs with their scores, or a line
                has no candidate.
        """
        if len(lines) != len(sources):
            raise T2TError(
                f"{name} has {len(lines)} lines, and the source has {len(sources)}: give the text that was "
                "decoded"
            )
        candidates = []
        for number, (line, source) in enumerate(zip(lines, sources, strict=True), start=1):
            try:
                candidates.append([Candidate("", 0.0)] if is_blank(source) else _parse(number, line))
            except LineError as error:
                raise T2TError(f"{name}, {error}") from error
        return cls(sources, candidates)

    @property
    def width(self) -> int:
        """The largest number of candidates of a line."""
        return max(map(len, self.candidates), default=0)

    def places(self) -> Iterator[tuple[int, int]]:
        """Yields the line and the rank, both from 0, of each candidate of lines that have several."""
        for line, candidates in enumerate(self.candidates):
            if len(candidates) > 1:
                yield from ((line, rank) for rank in range(len(candidates)))


def _parse(number: int, line: str) -> list[Candidate]:
    cells = line.split("\t")
    if len(cells) % 2:
        columns = f"{len(cells)} column{'s' * (len(cells) > 1)}"
        raise LineError(number, f"{columns} instead of pairs of an output and its score: {HOW}")
    outputs = [
        Candidate(text, _score(number, text, value))
        for text, value in zip(cells[::2], cells[1::2], strict=True)
    ]
    there = [output for output in outputs if output.score > -math.inf]
    if not there:
        raise LineError(number, "no candidates for a line that is not blank: the search finished none")
    return [output for output in there if output.text.strip()] or there[:1]


def _score(number: int, text: str, value: str) -> float:
    try:
        score = float(value)
    except ValueError as error:
        raise LineError(number, f"the score {value!r} is no number: {HOW}") from error
    if math.isfinite(score) or (score == -math.inf and not text):
        return score
    raise LineError(number, f"the score {value} of {text[:40]!r} is not finite: decode the text again")


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


def feature_names(models: Sequence[RescoringModel]) -> list[str]:
    """Returns the names of the features, in the order of `make_table`."""
    return [FIRST, *(model.name for model in models), LAST]


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
