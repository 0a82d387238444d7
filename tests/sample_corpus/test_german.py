"""German forms against the tables of a school grammar, and the order of words."""

import pytest

from t2t_revival.sample_corpus import german
from t2t_revival.sample_corpus.function_words import LINKS, TIMES
from t2t_revival.sample_corpus.lexicon import ADJECTIVES, BE, NOUNS, VERBS
from t2t_revival.sample_corpus.meaning import Clause, Gap, Name, Phrase, Pronoun, Sentence

NOUN = {noun.name: noun for noun in NOUNS}
ADJECTIVE = {adjective.name: adjective for adjective in ADJECTIVES}
VERB = {verb.name: verb for verb in VERBS}
LINK = {link.english: link for link in LINKS}
TIME = {time.german: time for time in TIMES}
OLD = (ADJECTIVE["old"],)
CASES = ("nom", "gen", "dat", "acc")


@pytest.mark.parametrize(
    ("noun", "determiner", "plural", "forms"),
    [
        ("dog", "the", False, "der alte Hund, des alten Hundes, dem alten Hund, den alten Hund"),
        ("cat", "the", False, "die alte Katze, der alten Katze, der alten Katze, die alte Katze"),
        ("bear", "the", False, "der alte Bär, des alten Bären, dem alten Bären, den alten Bären"),
        ("apple", "the", True, "die alten Äpfel, der alten Äpfel, den alten Äpfeln, die alten Äpfel"),
        ("dog", "a", False, "ein alter Hund, eines alten Hundes, einem alten Hund, einen alten Hund"),
        ("horse", "a", False, "ein altes Pferd, eines alten Pferdes, einem alten Pferd, ein altes Pferd"),
        ("wine", "", False, "alter Wein, alten Weins, altem Wein, alten Wein"),
        ("milk", "", False, "alte Milch, alter Milch, alter Milch, alte Milch"),
        ("dog", "", True, "alte Hunde, alter Hunde, alten Hunden, alte Hunde"),
        ("hat", "our", True, "unsere alten Hüte, unserer alten Hüte, unseren alten Hüten, unsere alten Hüte"),
        ("dog", "many", True, "viele alte Hunde, vieler alter Hunde, vielen alten Hunden, viele alte Hunde"),
    ],
)  # fmt: skip
def test_declension(noun, determiner, plural, forms):
    phrase = Phrase(NOUN[noun], determiner, plural, OLD)
    assert [" ".join(german.noun_phrase(phrase, case)) for case in CASES] == forms.split(", ")


def test_every_noun_has_a_capital_and_a_genitive_that_fits_its_gender():
    for noun in NOUNS:
        assert noun.german[0].isupper()
        assert noun.german_plural[0].isupper()
        weak = noun.german_oblique != noun.german
        if noun.german_gender == "f":
            assert noun.german_genitive == noun.german
        else:
            assert noun.german_genitive.endswith("n" if weak else "s")


WOMAN, DOOR, DOG = (Phrase(NOUN[name]) for name in ("woman", "door", "dog"))
OWNED = Phrase(NOUN["coat"], "a", adjectives=(ADJECTIVE["expensive"],), owner=Phrase(NOUN["teacher"]))
MAN = Phrase(NOUN["man"], relative=Clause(Gap(Phrase(NOUN["man"])), VERB["sleep"]))
OPEN, SEE, SLEEP = VERB["open"], VERB["see"], VERB["sleep"]


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Clause(WOMAN, OPEN, object=DOOR), "Die Frau macht die Tür auf."),
        (Clause(WOMAN, OPEN, "past", object=DOOR, time=TIME["gestern"], time_first=True),
         "Gestern machte die Frau die Tür auf."),
        (Clause(WOMAN, OPEN, "past", "must", object=DOOR), "Die Frau musste die Tür aufmachen."),
        (Clause(MAN, OPEN, "future", object=DOOR), "Der Mann, der schläft, wird die Tür aufmachen."),
        (Sentence(Clause(DOG, SLEEP, "past"), link=LINK["when"],
                  linked=Clause(WOMAN, OPEN, "past", "want", object=DOOR), link_first=True),
         "Als die Frau die Tür aufmachen wollte, schlief der Hund."),
        (Sentence(Clause(WOMAN, OPEN, object=DOOR), "whether"), "Macht die Frau die Tür auf?"),
        (Sentence(Clause(Gap(), OPEN, object=DOOR), "who"), "Wer macht die Tür auf?"),
        (Sentence(Clause(WOMAN, SEE, "past", object=Gap()), "what"), "Was sah die Frau?"),
        (Clause(WOMAN, SEE, negated=True, object=DOG), "Die Frau sieht den Hund nicht."),
        (Clause(WOMAN, SEE, negated=True, object=Phrase(NOUN["dog"], "a")), "Die Frau sieht keinen Hund."),
        (Clause(Pronoun("I"), VERB["give"], "future", object=DOG, recipient=Pronoun("they")),
         "Ich werde ihnen den Hund geben."),
        (Clause(WOMAN, VERB["say"], content=Clause(DOG, BE, quality=OLD[0], than=WOMAN)),
         "Die Frau sagt, dass der Hund älter ist als die Frau."),
        (Clause(Pronoun("he"), VERB["go to"], object=Phrase(NOUN["school"])), "Er geht zur Schule."),
        (Clause(WOMAN, SEE, object=OWNED), "Die Frau sieht einen teuren Mantel des Lehrers."),
        (Clause(WOMAN, SEE, object=Phrase(NOUN["dog"], adjectives=OLD, owner=Name("Anna", "f"))),
         "Die Frau sieht Annas alten Hund."),
    ],
)  # fmt: skip
def test_word_order(meaning, expected):
    assert german.sentence(meaning if isinstance(meaning, Sentence) else Sentence(meaning)) == expected
