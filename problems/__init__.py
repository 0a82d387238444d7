"""Problems by name. Importing this package registers all of them."""

from t2t_revival.problems import translate_ende, translate_enfr
from t2t_revival.problems.problem import Problem, Text2TextProblem

__all__ = ["Problem", "Text2TextProblem", "translate_ende", "translate_enfr"]
