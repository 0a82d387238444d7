"""WMT 2014 English to German (section 5.1), or any other corpus of this pair of languages."""

from t2t_revival import registration
from t2t_revival.problems.problem import Problem


@registration.register_problem
class TranslateEnde(Problem):
    """English to German; by default WMT 2014, 4.5 million pairs."""

    source_lang = "en"
    target_lang = "de"
    tfds_default = "wmt14_translate/de-en"
    large_vocab_size = 37_000  # section 5.1: shared by both languages
