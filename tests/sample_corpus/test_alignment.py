"""Gold word alignments, checked by eye: each word with the words of the other side that it is linked with."""

import pytest

from t2t_revival.sample_corpus import SampleSentence, english, french, generate, german
from t2t_revival.sample_corpus.function_words import LINKS, TIMES
from t2t_revival.sample_corpus.lexicon import ADJECTIVES, BE, NOUNS, VERBS
from t2t_revival.sample_corpus.meaning import Clause, Gap, Phrase, Pronoun, Sentence

NOUN = {noun.name: noun for noun in NOUNS}
ADJECTIVE = {adjective.name: adjective for adjective in ADJECTIVES}
VERB = {verb.name: verb for verb in VERBS}
LINK = {link.english: link for link in LINKS}
TIME = {time.german: time for time in TIMES}


def phrase(name, determiner="the", *adjectives, **rest):
    return Phrase(NOUN[name], determiner, False, tuple(ADJECTIVE[word] for word in adjectives), **rest)


def sample(meaning):
    tree = english.sentence(meaning)
    texts = english.text(tree), german.sentence(meaning), french.sentence(meaning)
    return SampleSentence(*texts, english.bracketing(tree), meaning)


def linked(made, source, target):
    """Returns each word of the source with its words of the target: "doesn't=ne+voit+pas"."""
    words, others = getattr(made, source).split(), getattr(made, target).split()
    found = [[] for _ in words]
    for pair in made.alignment(source, target).split():
        first, second = map(int, pair.split("-"))
        found[first].append(others[second])
    return " ".join(f"{word}={'+'.join(links)}" for word, links in zip(words, found, strict=True))


NO_DOG = Clause(phrase("man"), VERB["see"], "past", negated=True, object=phrase("dog", "a", "old"))
CASES = {  # with German, and with French
    Sentence(Clause(phrase("woman"), VERB["open"], "past", negated=True, object=phrase("door"))): (
        "The=Die woman=Frau didn't=machte+nicht open=machte+auf. the=die door.=Tür",
        "The=La woman=femme didn't=n'a+pas open=ouvert the=la door.=porte.",
    ),
    Sentence(NO_DOG): (
        "The=Der man=Mann didn't=sah+keinen see=sah an=keinen old=alten dog.=Hund.",
        "The=L'homme man=L'homme didn't=n'a+pas see=vu an=de old=vieux dog.=chien.",
    ),
    Sentence(Clause(Pronoun("they"), VERB["wait for"], "future", negated=True, object=Pronoun("he"))): (
        "They=Sie won't=werden+nicht wait=warten. for=auf him.=ihn",
        "They=Ils won't=ne+l'attendront+pas. wait=l'attendront for=l'attendront him.=l'attendront",
    ),
    Sentence(Clause(phrase("tree"), BE, quality=ADJECTIVE["beautiful"], than=phrase("house", "my"))): (
        "The=Der tree=Baum is=ist more=schöner beautiful=schöner than=als my=mein house.=Haus.",
        "The=L'arbre tree=L'arbre is=est more=plus beautiful=beau than=que my=ma house.=maison.",
    ),
    Sentence(Clause(phrase("dog", owner=phrase("teacher")), VERB["sleep"], time=TIME["am Abend"])): (
        "The=des teacher's=Lehrers dog=Hund sleeps=schläft in=am the=am evening.=Abend.",
        "The=du teacher's=du+professeur dog=chien sleeps=dort in=le the=le evening.=soir.",
    ),
    Sentence(Clause(Pronoun("I"), VERB["give"], object=phrase("key", "a"), recipient=phrase("king"))): (
        "I=Ich give=gebe the=dem king=König a=einen key.=Schlüssel.",
        "I=Je give=donne the=au king=roi. a=une key.=clé",
    ),
    Sentence(Clause(Pronoun("he"), VERB["cook"], "past", time=TIME["letzten Monat"]), "whether"): (
        "Did=Kochte he=er cook=Kochte last=letzten month?=Monat?",
        "Did=Est-ce+qu'il+a he=qu'il cook=cuisiné last=dernier month?=mois+?",
    ),
    Sentence(Clause(phrase("owl"), VERB["eat"], object=Gap()), "what"): (
        "What=Was does=isst the=die owl=Eule? eat?=isst",
        "What=Qu'est-ce+que does=mange the=le owl=hibou eat?=mange+?",
    ),
}


@pytest.mark.parametrize(("meaning", "links"), CASES.items())
def test_words_that_express_the_same_are_linked(meaning, links):
    made = sample(meaning)
    assert (linked(made, "english", "german"), linked(made, "english", "french")) == links


def test_the_format_is_that_of_pharaoh_in_every_direction():
    made = sample(Sentence(NO_DOG))
    assert made.alignment("english", "german") == "0-0 1-1 2-2 2-3 3-2 4-3 5-4 6-5"
    assert linked(made, "german", "french") == (
        "Der=L'homme Mann=L'homme sah=n'a+vu keinen=n'a+pas+de alten=vieux Hund.=chien."
    )
    there, back = (made.alignment(*sides) for sides in (("german", "french"), ("french", "german")))
    assert {tuple(pair.split("-")) for pair in there.split()} == {
        tuple(reversed(pair.split("-"))) for pair in back.split()
    }


@pytest.mark.slow
@pytest.mark.parametrize("other", ["german", "french"])
def test_in_the_corpus_nearly_every_word_is_linked(other):
    words = unlinked = unlinked_others = 0
    for made in generate("train", 2000, seed=3):
        sizes = len(made.english.split()), len(getattr(made, other).split())
        pairs = [tuple(map(int, pair.split("-"))) for pair in made.alignment("english", other).split()]
        assert pairs == sorted(set(pairs))
        assert all(0 <= first < sizes[0] and 0 <= second < sizes[1] for first, second in pairs)
        words += sizes[0]
        unlinked += sizes[0] - len({first for first, _ in pairs})
        unlinked_others += sizes[1] - len({second for _, second in pairs})
    assert unlinked < 0.001 * words
    assert unlinked_others < 0.05 * words  # articles that English lacks, and "à" before a recipient
