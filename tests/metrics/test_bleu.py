"""Scores of translations against BLEU written out here."""

import math
from collections import Counter
from functools import partial
from typing import Any

import pytest

from t2t_revival import T2TError
from t2t_revival.metrics.bleu import MOSES_LANGUAGES, chrf_score, paper_style_bleu, sacrebleu_score, t2t_bleu

HYPOTHESES = [
    "Das Rich-Text-Format ist sehr alt.",
    "Er sagte: „Der Hund, der im Garten liegt, schläft den ganzen Tag“, und ging.",
    "Am 3. Mai kostete es 1,5 Mio. Euro.",
]
REFERENCES = [
    "Das Rich-Text-Format ist sehr, sehr alt.",
    "Er sagte: „Der Hund, der im Haus liegt, schläft den ganzen Tag“, und er ging.",
    "Am 3. Mai kostete es etwa 1,5 Mio. Euro!",
]
# By hand: what the Moses tokeniser separates, quotes in ASCII and escaped, compounds split at hyphens.
HYPOTHESIS_TOKENS = [
    "Das Rich ##AT##-##AT## Text ##AT##-##AT## Format ist sehr alt .",
    "Er sagte : &quot; Der Hund , der im Garten liegt , schläft den ganzen Tag &quot; , und ging .",
    "Am 3. Mai kostete es 1,5 Mio. Euro .",
]
REFERENCE_TOKENS = [
    "Das Rich ##AT##-##AT## Text ##AT##-##AT## Format ist sehr , sehr alt .",
    "Er sagte : &quot; Der Hund , der im Haus liegt , schläft den ganzen Tag &quot; , und er ging .",
    "Am 3. Mai kostete es etwa 1,5 Mio. Euro !",
]


def corpus_bleu(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. (2002) on tokens between spaces: 4-grams, brevity penalty, no smoothing."""
    matches, totals = Counter(), Counter()
    lengths = [sum(len(line.split()) for line in lines) for lines in (hypotheses, references)]
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(1, 5):
            ours, theirs = (
                Counter(zip(*(line.split()[i:] for i in range(n)), strict=False))
                for line in (hypothesis, reference)
            )
            matches[n] += sum((ours & theirs).values())
            totals[n] += sum(ours.values())
    if not all(matches[n] for n in range(1, 5)):
        return 0.0
    precision = math.exp(sum(math.log(matches[n] / totals[n]) for n in range(1, 5)) / 4)
    return 100 * precision * min(1.0, math.exp(1 - lengths[1] / lengths[0]))


def test_paper_style_is_bleu_of_the_tokens_worked_out_by_hand() -> None:
    expected = corpus_bleu(HYPOTHESIS_TOKENS, REFERENCE_TOKENS)
    assert 50 < expected < 100
    result = paper_style_bleu(HYPOTHESES, REFERENCES, "de")
    assert result.score == pytest.approx(expected, abs=1e-9)
    assert "tok:moses-de-atat" in result.signature
    assert "smooth:none" in result.signature


def test_paper_style_splits_compounds_of_german_alone() -> None:
    hypothesis, reference = (
        ["an up-to-date list of all of these words"],
        ["an up-to-now list of all of these words"],
    )
    unsplit = corpus_bleu(hypothesis, reference)
    split = corpus_bleu(
        ["an up ##AT##-##AT## to ##AT##-##AT## date list of all of these words"],
        ["an up ##AT##-##AT## to ##AT##-##AT## now list of all of these words"],
    )
    assert split != pytest.approx(unsplit)
    assert paper_style_bleu(hypothesis, reference, "en").score == pytest.approx(unsplit, abs=1e-9)
    assert paper_style_bleu(hypothesis, reference, "de").score == pytest.approx(split, abs=1e-9)


def test_paper_style_is_not_smoothed_and_minds_case() -> None:
    assert paper_style_bleu(["ein Hund schläft"], ["ein Hund schläft"], "de").score == 0  # no 4-grams
    assert paper_style_bleu(["ein Hund schläft hier nun"], ["EIN HUND SCHLÄFT HIER NUN"], "de").score == 0


def test_lowercase() -> None:
    shouted = [line.upper() for line in REFERENCES]
    assert sacrebleu_score(shouted, REFERENCES).score < 50
    result = sacrebleu_score(shouted, REFERENCES, lowercase=True)
    assert result.score == pytest.approx(100)
    assert "case:lc|eff:no|tok:13a|smooth:exp" in result.signature


def test_chrf_is_f2_of_character_ngrams() -> None:
    # "abc" against "abd": precision and recall are 2/3, 1/2 and 0 for n = 1, 2, 3; longer ones do not exist.
    result = chrf_score(["abc"], ["abd"])
    assert result.score == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3)
    assert "nc:6|nw:0" in result.signature


SYMBOLS = ["a\\b²c x½,y 5€+3$=8 {[~^`|]} ٣،٤ “so”…", "C:\\dir\\file costs $5.50, or 10%!"]


OF_TENSOR2TENSOR = [
    (HYPOTHESES, REFERENCES, 72.13342, 72.13342),
    ([line.upper() for line in HYPOTHESES], REFERENCES, 72.13342, 3.684647),
    (["ein alter Hund läuft im Park"], ["ein alter Mann schläft im Park dort"], 19.433095, 19.433095),
    (["eins zwei drei vier fünf"], ["sechs sieben acht neun zehn elf"], 4.372913, 4.372913),
    (SYMBOLS, [SYMBOLS[0].replace("½,y", "½,z"), "C:\\dir\\file cost $5.50 or 10%?"], 72.554672, 72.554672),
    (["", "ein Hund läuft durch den Park"], ["nichts", "ein Hund läuft durch den Park"], *[84.648174] * 2),
    (["Ein Hund"], ["Ein Hund"], 100.0, 100.0),
    ([""], ["ein Hund"], 0.0, 0.0),
]


@pytest.mark.parametrize(("hypotheses", "references", "uncased", "cased"), OF_TENSOR2TENSOR)
def test_t2t_bleu_is_what_tensor2tensor_gave(
    hypotheses: list[str], references: list[str], uncased: float, cased: float
) -> None:
    """The values come from `bleu_tokenize` and `compute_bleu` of tensor2tensor 1.15.7, in its float32."""
    assert t2t_bleu(hypotheses, references, lowercase=True) == pytest.approx(uncased, abs=1e-4)
    assert t2t_bleu(hypotheses, references) == pytest.approx(cased, abs=1e-4)


def test_why_short_perfect_text_has_no_score() -> None:
    for short in (sacrebleu_score(["Ein Hund"], ["Ein Hund"]), paper_style_bleu(["eins"], ["eins"], "de")):
        assert short.score == 0
        assert str(short).endswith("; no 4-grams: each translation has fewer than 4 tokens")
    assert "no 4-grams" not in str(sacrebleu_score(["eins zwei drei vier"], ["fünf sechs sieben acht"]))


@pytest.mark.parametrize(
    "score", [sacrebleu_score, chrf_score, t2t_bleu, partial(paper_style_bleu, target_lang="de")]
)
def test_lines_that_cannot_be_scored(score: Any) -> None:
    with pytest.raises(T2TError, match="2 translations but 1 references"):
        score(["a", "b"], ["a"])
    with pytest.raises(T2TError, match="nothing to score"):
        score([], [])
    with pytest.raises(T2TError, match="translations: 'ein Hund' is of type str: give a list"):
        score("ein Hund", "ein Hund")
    with pytest.raises(T2TError, match="line 2: references: None is not a string"):
        score(["ein Hund", "eine Katze"], ["ein Hund", None])
    with pytest.raises(T2TError, match=r"line 1: translations: \['ein Hund'\] is not a string"):
        score([["ein Hund"]], ["ein Hund"])


def test_the_languages_of_the_papers_score_are_those_of_moses_tokeniser():
    from sacremoses.corpus import NonbreakingPrefixes

    assert set(NonbreakingPrefixes().available_langs.values()) == MOSES_LANGUAGES
