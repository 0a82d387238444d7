"""Problems by name. Importing this package registers all of them."""

from t2t_revival.data.base_source import PairsSource
from t2t_revival.problems import parse_wsj, translate_ende, translate_enfr, translate_enzh, translate_many
from t2t_revival.problems.problem import Data, Problem, Text2TextProblem

__all__ = [
    "Data",
    "PairsSource",
    "Problem",
    "Text2TextProblem",
    "parse_wsj",
    "translate_ende",
    "translate_enfr",
    "translate_enzh",
    "translate_many",
]
