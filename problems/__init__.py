"""Problems by name. Importing this package registers all of them."""

from t2t_revival.data.pairs_source import PairsSource
from t2t_revival.problems import parse_wsj, translate_ende, translate_enfr, translate_enzh, translate_many
from t2t_revival.problems.problem import Problem
from t2t_revival.problems.reversed import ReversedProblem, one_way
from t2t_revival.problems.text_problems import Text2TextProblem

__all__ = [
    "PairsSource",
    "Problem",
    "ReversedProblem",
    "Text2TextProblem",
    "one_way",
    "parse_wsj",
    "translate_ende",
    "translate_enfr",
    "translate_enzh",
    "translate_many",
]
