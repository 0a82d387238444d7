"""English to Chinese, with a vocabulary for each (T2T's translate_enzh)."""

from t2t_revival import registration
from t2t_revival.problems.text_problems import Text2TextProblem


@registration.register_problem
class TranslateEnzh(Text2TextProblem):
    """English to Chinese, with two vocabularies; by default WMT 2017."""

    source_lang = "en"
    target_lang = "zh"
    default_source = "tfds:wmt17_translate/zh-en"
    separate_vocabularies = True
