"""Prepositions, adverbs, times, links between clauses and names, each with its three languages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preposition:
    english: str
    german: str
    case: str
    french: str


@dataclass(frozen=True)
class Adverb:
    """`negative`: French puts "ne" before the verb."""

    english: str
    german: str
    french: str
    negative: bool = False


@dataclass(frozen=True)
class Time:
    """When something happens; `tree` is the English phrase as bracketing, `tenses` where it fits."""

    tree: tuple
    german: str
    french: str
    tenses: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """A conjunction.

    Attributes:
        german_past: used with the past tense where German differs ("als" for "wenn").
        mood: "indicative" or "subjunctive" in French.
        before: whether the linked clause may stand first.
        joins: whether it coordinates two main clauses instead of subordinating one.
        tenses: pairs (main, linked) that go together.
    """

    english: str
    tag: str
    german: str
    german_past: str
    french: str
    mood: str
    before: bool
    joins: bool
    tenses: tuple[tuple[str, str], ...]


IN = Preposition("in", "in", "dat", "dans")
BEHIND = Preposition("behind", "hinter", "dat", "derrière")
NEAR = Preposition("near", "bei", "dat", "près de")
BESIDE = Preposition("beside", "neben", "dat", "à côté de")
WITH = Preposition("with", "mit", "dat", "avec")
WITHOUT = Preposition("without", "ohne", "acc", "sans")
FOR = Preposition("for", "für", "acc", "pour")
SPOTS = (BEHIND, NEAR, BESIDE)
COMPANY = (WITH, WITHOUT)

FREQUENCIES = (
    Adverb("often", "oft", "souvent"),
    Adverb("always", "immer", "toujours"),
    Adverb("sometimes", "manchmal", "parfois"),
    Adverb("rarely", "selten", "rarement"),
    Adverb("never", "nie", "jamais", negative=True),
)
MANNERS = (
    Adverb("slowly", "langsam", "lentement"),
    Adverb("quickly", "schnell", "rapidement"),
    Adverb("carefully", "vorsichtig", "prudemment"),
)


def _noun_time(*words: tuple[str, str]) -> tuple:
    return ("NP", *words)


TIMES = (
    Time(_noun_time(("NN", "yesterday")), "gestern", "hier", ("past",)),
    Time(_noun_time(("JJ", "last"), ("NN", "week")), "letzte Woche", "la semaine dernière", ("past",)),
    Time(_noun_time(("JJ", "last"), ("NN", "month")), "letzten Monat", "le mois dernier", ("past",)),
    Time(_noun_time(("JJ", "last"), ("NN", "year")), "letztes Jahr", "l'année dernière", ("past",)),
    Time(_noun_time(("NN", "today")), "heute", "aujourd'hui", ("present", "future")),
    Time(("ADVP", ("RB", "now")), "jetzt", "maintenant", ("present",)),
    Time(_noun_time(("DT", "every"), ("NN", "day")), "jeden Tag", "tous les jours", ("present",)),
    Time(("PP", ("IN", "on"), ("NP", ("NNPS", "Sundays"))), "sonntags", "le dimanche", ("present",)),
    Time(("PP", ("IN", "in"), ("NP", ("DT", "the"), ("NN", "evening"))), "am Abend", "le soir", ("present",)),
    Time(_noun_time(("NN", "tomorrow")), "morgen", "demain", ("future",)),
    Time(_noun_time(("JJ", "next"), ("NN", "week")), "nächste Woche", "la semaine prochaine", ("future",)),
    Time(_noun_time(("JJ", "next"), ("NN", "month")), "nächsten Monat", "le mois prochain", ("future",)),
    Time(_noun_time(("JJ", "next"), ("NN", "year")), "nächstes Jahr", "l'année prochaine", ("future",)),
)

_SAME = (("present", "present"), ("past", "past"))
LINKS = (
    Link(
        "because",
        "IN",
        "weil",
        "weil",
        "parce que",
        "indicative",
        False,
        False,
        (*_SAME, ("present", "past"), ("future", "present")),
    ),
    Link("when", "WRB", "wenn", "als", "quand", "indicative", True, False, _SAME),
    Link(
        "while",
        "IN",
        "während",
        "während",
        "pendant que",
        "indicative",
        True,
        False,
        (("present", "present"),),
    ),
    Link("although", "IN", "obwohl", "obwohl", "bien que", "subjunctive", True, False, _SAME),
    Link(
        "if",
        "IN",
        "wenn",
        "wenn",
        "si",
        "indicative",
        True,
        False,
        (("present", "present"), ("future", "present")),
    ),
    Link(
        "but",
        "CC",
        "aber",
        "aber",
        "mais",
        "indicative",
        False,
        True,
        (*_SAME, ("present", "past"), ("past", "present"), ("present", "future")),
    ),
    Link("and", "CC", "und", "und", "et", "indicative", False, True, (*_SAME, ("future", "future"))),
)

NAMES = (
    ("Anna", "f"), ("Peter", "m"), ("Maria", "f"), ("Paul", "m"), ("Julia", "f"),
    ("Martin", "m"), ("Emma", "f"), ("Oskar", "m"), ("Sophie", "f"), ("Robert", "m"),
)  # fmt: skip

PRONOUNS = ("I", "he", "she", "we", "they")
POSSESSIVES = ("my", "our", "his", "her", "their")
NUMERALS = ("two", "three", "four", "five")
