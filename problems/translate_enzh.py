"""English to Chinese, with a vocabulary for each (T2T's translate_enzh)."""

from t2t_revival import registration
from t2t_revival.problems.problem import Problem


@registration.register_problem
class TranslateEnzh(Problem):
    """English to Chinese, with two vocabularies; by default WMT 2017."""

    source_lang = "en"
    target_lang = "zh"
    default_source = "tfds:wmt17_translate/zh-en"
    separate_vocabularies = True
