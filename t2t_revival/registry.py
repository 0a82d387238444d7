"""Names of problems, hparams sets, optimizers and factors of the learning rate (T2T's `utils/registry.py`).

    @registry.register_problem
    class TranslateEnde(Text2TextProblem): ...      # registry.problem("translate_ende")

    @registry.register_hparams
    def base() -> HParams: ...                      # registry.hparams("base")

    @registry.register_schedule_factor
    def halving(step, hparams): ...                 # --hparams="learning_rate_schedule=constant*halving"

A name is the class or function name in snake_case. This module imports what is built in; `registration` has
the decorators for modules that this one imports.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from t2t_revival import t2t_names
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams, auto
from t2t_revival.problems import Problem, translate_pair
from t2t_revival.registration import (
    HPARAMS,
    OPTIMIZERS,
    PROBLEMS,
    REVERSED,
    SCHEDULE_FACTORS,
    import_usr_dir,
    register_hparams,
    register_optimizer,
    register_problem,
    register_schedule_factor,
    snake_case,
    unknown,
    usr_dir,
)

if TYPE_CHECKING:
    from t2t_revival.data.config import Metadata

__all__ = [
    "REVERSED",
    "fit_vocabulary",
    "has_problem",
    "hparams",
    "import_usr_dir",
    "list_hparams",
    "list_optimizers",
    "list_problems",
    "list_schedule_factors",
    "problem",
    "register_hparams",
    "register_optimizer",
    "register_problem",
    "register_schedule_factor",
    "snake_case",
    "usr_dir",
    "usual_hparams",
]


def problem(name: str, **settings: Any) -> Problem:
    """Returns the problem of that name, built with `settings` (such as `data_source="sample"`).

    `NAME_rev` is the problem NAME with inputs and targets swapped; see `Problem.reversed`. Names such as
    `translate_fi_en` are those of two languages; see `TranslatePair`.

    Raises:
        T2TError: there is no such problem (names similar ones), it has no such setting, or it cannot be
            reversed.
    """
    base = name.removesuffix(REVERSED) if name not in PROBLEMS else name
    pair = translate_pair.NAME.fullmatch(base)
    if not pair and base not in PROBLEMS:
        known = list_problems()
        if (mirrored := _mirrored(name)) in known:
            raise T2TError(f"unknown problem {name!r}; did you mean {mirrored}?")
        meant = unknown(name, known, "problem")
        if near := translate_pair.near_name(name):
            codes = "its languages are codes such as pt, pt_BR or zh_Hans"
            meant = f"unknown problem {name!r}; did you mean {near}? ({codes})"
        raise T2TError(t2t_names.explain_problem(name) or meant)
    made = translate_pair.TranslatePair(pair.groups(), **settings) if pair else PROBLEMS[base](**settings)
    return made if base == name else made.reversed()


def _mirrored(name: str) -> str:
    """Returns the other name of a direction, such as `translate_enfr_rev` for `translate_fren`."""
    match = re.fullmatch(rf"(.*_)([a-z]{{2}})([a-z]{{2}})({REVERSED})?", name)
    if not match:
        return name
    prefix, source, target, was_reversed = match.groups()
    return f"{prefix}{target}{source}{'' if was_reversed else REVERSED}"


def has_problem(name: str) -> bool:
    """Returns whether `problem` knows a name."""
    return name in list_problems() or bool(translate_pair.NAME.fullmatch(name.removesuffix(REVERSED)))


def hparams(name: str, overrides: str = "") -> HParams:
    """Returns the hparams set of that name, with `overrides` such as "batch_size=2048,num_heads=4".

    Raises:
        T2TError: there is no such set, or an override is invalid.
    """
    if name not in HPARAMS:
        raise T2TError(t2t_names.explain_hparams(name) or unknown(name, HPARAMS, "hparams set"))
    return HPARAMS[name]().override(overrides)


def usual_hparams(
    problem: Problem, metadata: Metadata, read: float = auto.MINUTES * auto.PACE, updates: int = 0
) -> tuple[str, HParams]:
    """Returns the name of a set for a problem's data and its hparams, as `auto.fitted` says."""
    counts = metadata.splits["train"]
    tiny, small, base = problem.usual_hparams
    name = tiny if metadata.source == "sample" else base if counts.examples >= auto.FITS[-1].pairs else small
    tokens = sum(length * examples for length, examples in counts.lengths.items())
    if name != auto.AUTO:
        return name, hparams(name)
    return name, auto.fitted(counts.examples, tokens, read, updates)


def usual_decoding(problem: Problem, metadata: Metadata) -> dict[str, float]:
    """Returns settings of decoding that fit the set `auto`, where that fits, unless a problem has its own."""
    has_own = type(problem).decode_hparams is not Problem.decode_hparams
    is_other = usual_hparams(problem, metadata)[0] != auto.AUTO
    return {} if has_own or is_other else auto.DECODING


def fit_vocabulary(problem: Problem) -> None:
    """Has the data of a problem get the vocabulary that fits the set `auto`, unless its class has its own."""
    sizes = Problem.folder_vocab_sizes
    if problem.folder_vocab_sizes is sizes and not problem.lines_have_tags:
        problem.forward.folder_vocab_sizes = auto.vocab_sizes(sizes)


def list_problems() -> dict[str, str]:
    """Returns the names of all problems and their reverses, sorted, each with its docstring's first line."""
    reversed_problems = {
        f"{name}{REVERSED}": f"{name} with inputs and targets swapped, on the same data."
        for name, cls in PROBLEMS.items()
        if not cls.one_way()
    }
    return dict(sorted({**reversed_problems, **_summaries(PROBLEMS)}.items()))


def list_hparams() -> dict[str, str]:
    """Returns the names of all hparams sets, sorted, each with its docstring's first line."""
    return _summaries(HPARAMS)


def list_schedule_factors() -> dict[str, str]:
    """Returns the names of all factors of the learning rate, sorted, each with its docstring's first line."""
    return _summaries(SCHEDULE_FACTORS)


def list_optimizers() -> dict[str, str]:
    """Returns the names of all optimizers, sorted, each with its docstring's first line."""
    return _summaries(OPTIMIZERS)


def _summaries(table: dict) -> dict[str, str]:
    return {name: (table[name].__doc__ or "").strip().split("\n")[0] for name in sorted(table)}
