"""Gold word alignments, checked by eye: each word with the words of the other side that it is linked with."""

from itertools import islice

import pytest

from t2t_revival.sample_corpus import SampleSentence, english, french, generate, german
from t2t_revival.sample_corpus.function_words import FREQUENCIES, IN, LINKS, MANNERS, NEAR, TIMES
from t2t_revival.sample_corpus.lexicon import ADJECTIVES, BE, NOUNS, VERBS
from t2t_revival.sample_corpus.meaning import Both, Clause, Gap, Name, Phrase, Pronoun, Sentence

NOUN = {noun.name: noun for noun in NOUNS}
ADJECTIVE = {adjective.name: adjective for adjective in ADJECTIVES}
VERB = {verb.name: verb for verb in VERBS}
LINK = {link.english: link for link in LINKS}
TIME = {time.german: time for time in TIMES}
OFTEN, NEVER = FREQUENCIES[0], FREQUENCIES[-1]


def phrase(name, determiner="the", plural=False, *adjectives, **rest):
    return Phrase(NOUN[name], determiner, plural, tuple(ADJECTIVE[word] for word in adjectives), **rest)


def clause(subject, verb, *args, **rest):
    return Clause(subject, VERB.get(verb, BE), *args, **rest)


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


MAN, TIRED = phrase("man"), ADJECTIVE["tired"]
MEANINGS = {
    "separable": clause(phrase("woman"), "open", object=phrase("door")),
    "do": clause(phrase("woman"), "open", "past", negated=True, object=phrase("door")),
    "no": clause(MAN, "see", "past", negated=True, object=phrase("dog", "a", False, "old")),
    "future": clause(Pronoun("they"), "wait for", "future", negated=True, object=Pronoun("he")),
    "particle": clause(Pronoun("he"), "look at", "past", object=phrase("picture"), time=TIME["heute"]),
    "reflexive": clause(Name("Anna", "f"), "fall asleep", "past"),
    "shop": clause(Name("Anna", "f"), "shop", "present", "want", time=TIME["letzte Woche"], time_first=True),
    "had": clause(phrase("boy", "our"), "go to", "past", "must", object=phrase("school")),
    "than": clause(phrase("tree"), "be", quality=ADJECTIVE["beautiful"], than=phrase("house", "my")),
    "owner": clause(phrase("dog", owner=phrase("teacher")), "be", frequency=NEVER, quality=TIRED),
    "named": clause(phrase("dog", owner=Name("Emma", "f")), "sleep", modifier=(NEAR, phrase("tree", "this"))),
    "both": clause(Both(phrase("cat"), phrase("dog", "a")), "play", time=TIME["am Abend"]),
    "many": clause(phrase("baker", "many", True), "sell", object=phrase("bread", ""), frequency=OFTEN),
    "garment": clause(phrase("man", garment=phrase("hat", "the", False, "red")), "work", manner=MANNERS[0]),
    "recipient": clause(Pronoun("I"), "give", object=phrase("key", "a"), recipient=phrase("king")),
    "says": clause(MAN, "say", content=clause(Pronoun("she"), "follow", object=Pronoun("we"))),
    "relative": clause(
        phrase("cat", relative=clause(phrase("boy"), "see", "past", object=Gap(phrase("cat")))), "stay",
        modifier=(IN, phrase("park")),
    ),
    "sundays": clause(Name("Oskar", "m"), "come back", time=TIME["sonntags"]),
    "every": clause(Name("Oskar", "m"), "tidy up", object=phrase("room"), time=TIME["jeden Tag"]),
}  # fmt: skip
SENTENCES = {
    **{name: Sentence(made) for name, made in MEANINGS.items()},
    "whether": Sentence(clause(Pronoun("he"), "cook", "past", time=TIME["letzten Monat"]), "whether"),
    "who": Sentence(clause(Gap(), "listen to", "past", object=Name("Emma", "f")), "who"),
    "what": Sentence(clause(phrase("owl"), "eat", object=Gap()), "what"),
    "why": Sentence(clause(phrase("owl"), "be", quality=ADJECTIVE["sad"]), "why"),
    "although": Sentence(
        clause(Pronoun("we"), "swim"), link=LINK["although"],
        linked=clause(phrase("water", "the"), "be", quality=ADJECTIVE["cold"]), link_first=True,
    ),
    "but": Sentence(clause(phrase("nurse"), "cry"), link=LINK["but"], linked=clause(Pronoun("I"), "laugh")),
}  # fmt: skip
# With German, and with French.
LINKS_OF = {
    "separable": (
        "The=Die woman=Frau opens=macht+auf. the=die door.=Tür",
        "The=La woman=femme opens=ouvre the=la door.=porte.",
    ),
    "do": (
        "The=Die woman=Frau didn't=machte+nicht open=machte+auf. the=die door.=Tür",
        "The=La woman=femme didn't=n'a+pas open=ouvert the=la door.=porte.",
    ),
    "no": (
        "The=Der man=Mann didn't=sah+keinen see=sah an=keinen old=alten dog.=Hund.",
        "The=L'homme man=L'homme didn't=n'a+pas see=vu an=de old=vieux dog.=chien.",
    ),
    "future": (
        "They=Sie won't=werden+nicht wait=warten. for=auf him.=ihn",
        "They=Ils won't=ne+l'attendront+pas. wait=l'attendront for=l'attendront him.=l'attendront",
    ),
    "particle": (
        "He=Er looked=schaute at=an. the=das picture=Bild today.=heute",
        "He=Il looked=a+regardé at=regardé the=le picture=tableau today.=aujourd'hui.",
    ),
    "reflexive": (
        "Anna=Anna fell=schlief asleep.=schlief+ein.",
        "Anna=Anna fell=s'est+endormie. asleep.=s'est+endormie.",
    ),
    "shop": (
        "Last=Letzte week,=Woche Anna=Anna wants=will to=einkaufen. shop.=einkaufen.",
        "Last=dernière, week,=semaine Anna=Anna wants=veut to=faire+les+courses. shop.=faire+les+courses.",
    ),
    "had": (
        "Our=Unser boy=Junge had=musste to=musste go=gehen. to=zur the=zur school.=Schule",
        "Our=Notre boy=garçon had=devait to=devait go=aller to=à the=l'école. school.=l'école.",
    ),
    "than": (
        "The=Der tree=Baum is=ist more=schöner beautiful=schöner than=als my=mein house.=Haus.",
        "The=L'arbre tree=L'arbre is=est more=plus beautiful=beau than=que my=ma house.=maison.",
    ),
    "owner": (
        "The=des teacher's=Lehrers dog=Hund is=ist never=nie tired.=müde.",
        "The=du teacher's=du+professeur dog=chien is=n'est never=n'est+jamais tired.=fatigué.",
    ),
    "named": (
        "Emma's=Emmas dog=Hund sleeps=schläft near=bei this=diesem tree.=Baum.",
        "Emma's=d'Emma dog=chien sleeps=dort near=près+de this=cet tree.=arbre.",
    ),
    "both": (
        "The=Die cat=Katze and=und a=ein dog=Hund play=spielen in=am the=am evening.=Abend.",
        "The=Le cat=chat and=et a=un dog=chien play=jouent in=le the=le evening.=soir.",
    ),
    "many": (
        "Many=Viele bakers=Bäcker often=oft sell=verkaufen bread.=Brot.",
        "Many=Beaucoup+de bakers=boulangers often=souvent sell=vendent bread.=pain.",
    ),
    "garment": (
        "The=Der man=Mann with=mit the=dem red=roten hat=Hut works=arbeitet slowly.=langsam.",
        "The=L'homme man=L'homme with=au the=au red=rouge hat=chapeau works=travaille slowly.=lentement.",
    ),
    "recipient": (
        "I=Ich give=gebe the=dem king=König a=einen key.=Schlüssel.",
        "I=Je give=donne the=au king=roi. a=une key.=clé",
    ),
    "says": (
        "The=Der man=Mann says=sagt, that=dass she=sie follows=folgt. us.=uns",
        "The=L'homme man=L'homme says=dit that=qu'elle she=qu'elle follows=suit. us.=nous",
    ),
    "relative": (
        "The=Die cat=Katze, that=die the=der boy=Junge saw=sah, stays=bleibt in=im the=im park.=Park.",
        "The=Le cat=chat that=que the=le boy=garçon saw=a+vu stays=reste in=dans the=le park.=parc.",
    ),
    "sundays": (
        "Oskar=Oskar comes=kommt back=zurück. on=sonntags Sundays.=sonntags",
        "Oskar=Oskar comes=revient back=revient on=le Sundays.=dimanche.",
    ),
    "every": (
        "Oskar=Oskar tidies=räumt up=auf. the=das room=Zimmer every=jeden day.=Tag",
        "Oskar=Oskar tidies=range up=range the=la room=chambre every=tous+les day.=jours.",
    ),
    "whether": (
        "Did=Kochte he=er cook=Kochte last=letzten month?=Monat?",
        "Did=Est-ce+qu'il+a he=qu'il cook=cuisiné last=dernier month?=mois+?",
    ),
    "who": (
        "Who=Wer listened=hörte to=zu? Emma?=Emma",
        "Who=Qui listened=a+écouté to=écouté Emma?=Emma+?",
    ),
    "what": (
        "What=Was does=isst the=die owl=Eule? eat?=isst",
        "What=Qu'est-ce+que does=mange the=le owl=hibou eat?=mange+?",
    ),
    "why": (
        "Why=Warum is=ist the=die owl=Eule sad?=traurig?",
        "Why=Pourquoi is=est-ce+que+est the=le owl=hibou sad?=triste+?",
    ),
    "although": (
        "Although=Obwohl the=das water=Wasser is=ist, cold,=kalt we=wir. swim.=schwimmen",
        "Although=Bien+que the=l'eau water=l'eau is=soit cold,=froide, we=nous swim.=nageons.",
    ),
    "but": (
        "The=Die nurse=Krankenschwester cries,=weint, but=aber I=ich laugh.=lache.",
        "The=L'infirmière nurse=L'infirmière cries,=pleure, but=mais I=je laugh.=ris.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_words_that_express_the_same_are_linked(name):
    made = sample(SENTENCES[name])
    assert (linked(made, "english", "german"), linked(made, "english", "french")) == LINKS_OF[name]


def test_the_format_is_that_of_pharaoh():
    made = sample(SENTENCES["do"])
    assert made.english == "The woman didn't open the door."
    assert made.german == "Die Frau machte die Tür nicht auf."
    assert made.alignment("english", "german") == "0-0 1-1 2-2 2-5 3-2 3-6 4-3 5-4"


def test_german_and_french_are_aligned_too_and_in_both_directions():
    made = sample(SENTENCES["no"])
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


def test_alignments_are_those_of_the_seed():
    def lines(seed):
        return [made.alignment("english", "french") for made in islice(generate("dev", seed=seed), 50)]

    assert lines(4) == lines(4)
    assert lines(4) != lines(5)
