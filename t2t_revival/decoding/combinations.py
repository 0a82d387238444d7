"""Features of decoding that cannot be combined, and those that have no effect without another."""

from __future__ import annotations

from collections.abc import Mapping, Set

from t2t_revival.decoding.hypothesis_scores import PENALTIES
from t2t_revival.errors import T2TError

OF_CALLS = {  # features that are no settings, as people call them
    "greedy": "beam_size=1",
    "n": "more than one output",
    "prefixes": "forced beginnings",
    "constraints": "constraints",
    "scores": "scores of given outputs",
    "annotations": "details of given outputs",
    "ensemble": "an ensemble",
    "int8": "int8",
}
LENGTHS_AND_REPETITION = frozenset(
    {"no_repeat_ngram_size", "min_length_ratio", "max_length_ratio", "max_length_factor"}
)
GUARDS = LENGTHS_AND_REPETITION | PENALTIES.keys()
SCORED = frozenset({"token_scores", "alternatives"})
DETAILS = SCORED | {"alignments"}
OF_ATTENTION = frozenset({"coverage_penalty", "alignments", "markup"})
OF_TEXT = frozenset({"split_sentences", "prefixes", "constraints"})  # not of trees, nor markup
EXCLUDE: dict[str, Set[str]] = {  # features, and those that they cannot be combined with
    "constrained": GUARDS | SCORED | OF_ATTENTION | OF_TEXT | {"mbr"},
    "sampling_method": {"early_stopping", "coverage_penalty", "split_sentences", "constraints"},
    "coverage_penalty": {"greedy", "mbr"},
    "split_sentences": DETAILS | {"return_beams", "n", "prefixes", "constraints"},
    "markup": DETAILS | {"return_beams", "n", "prefixes", "constraints"},
    "constraints": {"greedy", "mbr", "prefixes"},
}
SAMPLING = ("sampling_temp", "sampling_keep_top_k", "random_seed")
NEEDS = dict.fromkeys(SAMPLING, "sampling_method=random") | {"candidates": "mbr"}


def check_combinations(asked: Mapping[str, str], pairs: Mapping[str, Set[str]] = EXCLUDE) -> None:
    """Raises T2TError for features that cannot be combined; see `capabilities.check`."""
    for feature, excluded in pairs.items():
        others = [written for other, written in asked.items() if other in excluded]
        if feature in asked and others:
            raise T2TError(f"{asked[feature]} cannot be combined with {others[0]}: leave one of them out")


def check_effects(asked: Mapping[str, str]) -> None:
    """Raises T2TError for a setting that has no effect without another."""
    for feature, needed in NEEDS.items():
        if feature in asked and needed.partition("=")[0] not in asked:
            raise T2TError(f"{asked[feature]} has no effect without {needed}: leave it out")
