"""WMT 2014 English to French (section 5.1), or any other corpus of this pair of languages."""

from t2t_revival import registration
from t2t_revival.problems.problem import Problem


@registration.register_problem
class TranslateEnfr(Problem):
    """English to French; by default WMT 2014, 36 million pairs."""

    source_lang = "en"
    target_lang = "fr"
    tfds_default = "wmt14_translate/fr-en"
    large_vocab_size = 32_000  # section 5.1: shared by both languages
