"""German forms against the tables of a school grammar, and the order of words."""

import pytest

from t2t_revival.sample_corpus import german
from t2t_revival.sample_corpus.function_words import IN, LINKS, TIMES
from t2t_revival.sample_corpus.lexicon import ADJECTIVES, BE, NOUNS, VERBS
from t2t_revival.sample_corpus.meaning import Clause, Gap, Name, Phrase, Pronoun, Sentence

NOUN = {noun.name: noun for noun in NOUNS}
ADJECTIVE = {adjective.name: adjective for adjective in ADJECTIVES}
VERB = {verb.name: verb for verb in VERBS}
LINK = {link.english: link for link in LINKS}
TIME = {time.german: time for time in TIMES}
OLD = (ADJECTIVE["old"],)
CASES = ("nom", "gen", "dat", "acc")

# Rows: nominative, genitive, dative, accusative.
DEFINITE = {
    "dog": "der alte Hund, des alten Hundes, dem alten Hund, den alten Hund",
    "cat": "die alte Katze, der alten Katze, der alten Katze, die alte Katze",
    "horse": "das alte Pferd, des alten Pferdes, dem alten Pferd, das alte Pferd",
    "bear": "der alte Bär, des alten Bären, dem alten Bären, den alten Bären",
}
DEFINITE_PLURAL = {
    "dog": "die alten Hunde, der alten Hunde, den alten Hunden, die alten Hunde",
    "car": "die alten Autos, der alten Autos, den alten Autos, die alten Autos",
    "woman": "die alten Frauen, der alten Frauen, den alten Frauen, die alten Frauen",
    "apple": "die alten Äpfel, der alten Äpfel, den alten Äpfeln, die alten Äpfel",
}
INDEFINITE = {
    "dog": "ein alter Hund, eines alten Hundes, einem alten Hund, einen alten Hund",
    "cat": "eine alte Katze, einer alten Katze, einer alten Katze, eine alte Katze",
    "horse": "ein altes Pferd, eines alten Pferdes, einem alten Pferd, ein altes Pferd",
}
BARE = {
    "wine": "alter Wein, alten Weins, altem Wein, alten Wein",
    "milk": "alte Milch, alter Milch, alter Milch, alte Milch",
    "bread": "altes Brot, alten Brotes, altem Brot, altes Brot",
}
BARE_PLURAL = {"dog": "alte Hunde, alter Hunde, alten Hunden, alte Hunde"}
POSSESSED_PLURAL = {
    "dog": "unsere alten Hunde, unserer alten Hunde, unseren alten Hunden, unsere alten Hunde"
}


@pytest.mark.parametrize(
    ("table", "determiner", "plural"),
    [
        (DEFINITE, "the", False),
        (DEFINITE_PLURAL, "the", True),
        (INDEFINITE, "a", False),
        (BARE, "", False),
        (BARE_PLURAL, "", True),
        (POSSESSED_PLURAL, "our", True),
    ],
)
def test_declension(table, determiner, plural):
    for name, row in table.items():
        phrase = Phrase(NOUN[name], determiner, plural, OLD)
        assert [" ".join(german.noun_phrase(phrase, case)) for case in CASES] == row.split(", ")


def test_der_words_and_quantities():
    dog, men = Phrase(NOUN["dog"], "every", adjectives=OLD), Phrase(NOUN["man"], "many", True, OLD)
    assert german.noun_phrase(dog, "acc") == ["jeden", "alten", "Hund"]
    assert german.noun_phrase(men, "nom") == ["viele", "alte", "Männer"]
    assert german.noun_phrase(men, "dat") == ["vielen", "alten", "Männern"]


def test_owners_are_genitive_or_come_first():
    teacher = Phrase(NOUN["teacher"])
    assert german.noun_phrase(Phrase(NOUN["dog"], adjectives=OLD, owner=teacher), "dat") == (
        ["dem", "alten", "Hund", "des", "Lehrers"]
    )
    named = Phrase(NOUN["dog"], adjectives=OLD, owner=Name("Anna", "f"))
    assert german.noun_phrase(named, "dat") == ["Annas", "altem", "Hund"]


def test_adjectives_that_drop_a_letter():
    assert german.noun_phrase(Phrase(NOUN["coat"], "a", adjectives=(ADJECTIVE["expensive"],)), "nom") == (
        ["ein", "teurer", "Mantel"]
    )
    assert german.noun_phrase(Phrase(NOUN["woman"], "the", adjectives=(ADJECTIVE["tired"],)), "dat") == (
        ["der", "müden", "Frau"]
    )


def test_every_noun_has_a_capital_and_a_genitive_that_fits_its_gender():
    for noun in NOUNS:
        assert noun.german[0].isupper()
        assert noun.german_plural[0].isupper()
        weak = noun.german_oblique != noun.german
        if noun.german_gender == "f":
            assert noun.german_genitive == noun.german
        else:
            assert noun.german_genitive.endswith("n" if weak else "s")


WOMAN, DOOR, DOG = Phrase(NOUN["woman"]), Phrase(NOUN["door"]), Phrase(NOUN["dog"])
OPEN, SEE, SLEEP, GIVE = VERB["open"], VERB["see"], VERB["sleep"], VERB["give"]


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Sentence(Clause(WOMAN, OPEN, object=DOOR)), "Die Frau macht die Tür auf."),
        (
            Sentence(Clause(WOMAN, OPEN, "past", object=DOOR, time=TIME["gestern"], time_first=True)),
            "Gestern machte die Frau die Tür auf.",
        ),
        (
            Sentence(Clause(WOMAN, OPEN, "past", object=DOOR, time=TIME["gestern"])),
            "Die Frau machte gestern die Tür auf.",
        ),
        (Sentence(Clause(WOMAN, OPEN, "future", object=DOOR)), "Die Frau wird die Tür aufmachen."),
        (
            Sentence(Clause(WOMAN, OPEN, "past", "must", object=DOOR)),
            "Die Frau musste die Tür aufmachen.",
        ),
        (
            Sentence(Clause(DOG, SLEEP), link=LINK["because"], linked=Clause(WOMAN, OPEN, object=DOOR)),
            "Der Hund schläft, weil die Frau die Tür aufmacht.",
        ),
        (
            Sentence(
                Clause(DOG, SLEEP, "past"),
                link=LINK["when"],
                linked=Clause(WOMAN, OPEN, "past", "want", object=DOOR),
                link_first=True,
            ),
            "Als die Frau die Tür aufmachen wollte, schlief der Hund.",
        ),
        (Sentence(Clause(WOMAN, OPEN, object=DOOR), "whether"), "Macht die Frau die Tür auf?"),
        (Sentence(Clause(Gap(), OPEN, object=DOOR), "who"), "Wer macht die Tür auf?"),
        (Sentence(Clause(WOMAN, SEE, "past", object=Gap()), "what"), "Was sah die Frau?"),
        (Sentence(Clause(WOMAN, SEE, negated=True, object=DOG)), "Die Frau sieht den Hund nicht."),
        (
            Sentence(Clause(WOMAN, SEE, negated=True, object=Phrase(NOUN["dog"], "a"))),
            "Die Frau sieht keinen Hund.",
        ),
        (
            Sentence(Clause(DOG, SLEEP, negated=True, modifier=(IN, Phrase(NOUN["garden"])))),
            "Der Hund schläft nicht im Garten.",
        ),
        (
            Sentence(Clause(Pronoun("I"), GIVE, "future", object=DOG, recipient=Pronoun("they"))),
            "Ich werde ihnen den Hund geben.",
        ),
        (
            Sentence(
                Clause(
                    Phrase(NOUN["man"], relative=Clause(Gap(Phrase(NOUN["man"])), SLEEP)), OPEN, object=DOOR
                )
            ),
            "Der Mann, der schläft, macht die Tür auf.",
        ),
        (
            Sentence(
                Clause(WOMAN, VERB["say"], content=Clause(DOG, BE, quality=ADJECTIVE["old"], than=WOMAN))
            ),
            "Die Frau sagt, dass der Hund älter ist als die Frau.",
        ),
        (
            Sentence(Clause(Pronoun("he"), VERB["go to"], object=Phrase(NOUN["school"]))),
            "Er geht zur Schule.",
        ),
    ],
)
def test_word_order(meaning, expected):
    assert german.sentence(meaning) == expected
