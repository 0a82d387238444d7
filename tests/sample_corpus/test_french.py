"""French forms: elision, contraction, agreement, clitics and tenses."""

import pytest

from t2t_revival.sample_corpus import french
from t2t_revival.sample_corpus.function_words import FREQUENCIES, LINKS, NEAR
from t2t_revival.sample_corpus.lexicon import ADJECTIVES, BE, NOUNS, VERBS
from t2t_revival.sample_corpus.meaning import Both, Clause, Gap, Name, Phrase, Pronoun, Sentence

NOUN = {noun.name: noun for noun in NOUNS}
ADJECTIVE = {adjective.name: adjective for adjective in ADJECTIVES}
VERB = {verb.name: verb for verb in VERBS}
LINK = {link.english: link for link in LINKS}
NEVER = next(adverb for adverb in FREQUENCIES if adverb.negative)


def phrase(name, determiner="the", plural=False, *adjectives, **rest):
    return Phrase(NOUN[name], determiner, plural, tuple(ADJECTIVE[word] for word in adjectives), **rest)


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (phrase("hedgehog"), "le hérisson"),
        (phrase("man", "this"), "cet homme"),
        (phrase("orange", "my"), "mon orange"),
        (phrase("orange", "my", False, "small"), "ma petite orange"),
        (phrase("tree", "a", False, "old"), "un vieil arbre"),
        (phrase("bird", "the", False, "beautiful"), "le bel oiseau"),
        (phrase("car", "the", False, "old", "red"), "la vieille voiture rouge"),
        (phrase("house", "", True, "big"), "de grandes maisons"),
        (phrase("apple", "", True, "red"), "des pommes rouges"),
        (phrase("orange", "many", True), "beaucoup d'oranges"),
        (phrase("bread", ""), "du pain"),
        (phrase("water", ""), "de l'eau"),
        (phrase("dog", owner=phrase("teacher", plural=True)), "le chien des professeurs"),
        (phrase("dog", owner=phrase("child")), "le chien de l'enfant"),
        (phrase("man", garment=phrase("shoe", "the", True, "black")), "l'homme aux chaussures noires"),
    ],
)
def test_noun_phrases(meaning, expected):
    verb = " dorment." if meaning.plural else " dort."
    assert french.sentence(Sentence(Clause(meaning, VERB["sleep"]))) == expected.capitalize() + verb


WOMAN, DOG, CAR = phrase("woman"), phrase("dog"), phrase("car")
SEE, SLEEP, EAT = VERB["see"], VERB["sleep"], VERB["eat"]
EATEN = phrase("apple", relative=Clause(phrase("man"), EAT, "past", object=Gap(phrase("apple"))))


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Clause(WOMAN, SEE, "past", object=Pronoun("she")), "La femme l'a vue."),
        (Clause(WOMAN, SEE, "past", object=Pronoun("they"), negated=True), "La femme ne les a pas vus."),
        (Clause(WOMAN, SEE, "past", "want", object=Pronoun("he")), "La femme voulait le voir."),
        (Clause(Pronoun("I"), VERB["love"], object=DOG), "J'aime le chien."),
        (Clause(Pronoun("she"), VERB["go to"], "past", object=phrase("park")), "Elle est allée au parc."),
        (Clause(Pronoun("we"), VERB["get up"], "past", negated=True), "Nous ne nous sommes pas levés."),
        (Clause(Both(WOMAN, CAR), VERB["arrive"], "past"), "La femme et la voiture sont arrivées."),
        (Clause(DOG, EAT, object=phrase("orange", "a"), negated=True), "Le chien ne mange pas d'orange."),
        (Clause(DOG, EAT, "past", object=CAR, frequency=NEVER), "Le chien n'a jamais mangé la voiture."),
        (Clause(DOG, VERB["give"], object=CAR, recipient=Pronoun("they")), "Le chien leur donne la voiture."),
        (Clause(WOMAN, VERB["think of"], object=Pronoun("they")), "La femme pense à eux."),
        (Clause(DOG, SLEEP, modifier=(NEAR, phrase("castle"))), "Le chien dort près du château."),
        (Clause(EATEN, BE, quality=ADJECTIVE["red"]), "La pomme que l'homme a mangée est rouge."),
        (Clause(WOMAN, BE, quality=ADJECTIVE["old"], than=DOG), "La femme est plus vieille que le chien."),
        (Clause(WOMAN, VERB["say"], content=Clause(Name("Anna", "f"), SLEEP)), "La femme dit qu'Anna dort."),
        (Sentence(Clause(WOMAN, SLEEP), link=LINK["if"], linked=Clause(Pronoun("he"), EAT, object=CAR),
                  link_first=True), "S'il mange la voiture, la femme dort."),
        (Sentence(Clause(WOMAN, SLEEP), link=LINK["although"], linked=Clause(DOG, EAT, "past", object=CAR)),
         "La femme dort bien que le chien ait mangé la voiture."),
        (Sentence(Clause(Pronoun("he"), SLEEP), "whether"), "Est-ce qu'il dort ?"),
        (Sentence(Clause(phrase("man"), SEE, object=Gap()), "what"), "Qu'est-ce que l'homme voit ?"),
        (Sentence(Clause(Gap(), SEE, "past", object=DOG), "who"), "Qui a vu le chien ?"),
    ],
)  # fmt: skip
def test_sentences(meaning, expected):
    assert french.sentence(meaning if isinstance(meaning, Sentence) else Sentence(meaning)) == expected
