"""Prepositions, adverbs, times, links between clauses and names, each with its three languages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preposition:
    """A preposition; `case` is the German one."""

    english: str
    german: str
    case: str
    french: str


@dataclass(frozen=True)
class Adverb:
    """An adverb; with a `negative` one, French has "ne" before the verb."""

    english: str
    german: str
    french: str
    negative: bool = False


@dataclass(frozen=True)
class Time:
    """A time of an action; `tree` is the English phrase, `tenses` those that it fits.

    Attributes:
        french_numbers: for each French word, the English words that it translates as digits; "-" for none.
        german_numbers: the same for each German word.
    """

    tree: tuple
    german: str
    french: str
    tenses: tuple[str, ...]
    french_numbers: str = "0"
    german_numbers: str = "0 1"


@dataclass(frozen=True)
class Link:
    """A conjunction.

    Attributes:
        german_past: the German conjunction with the past tense ("als" instead of "wenn").
        mood: "indicative" or "subjunctive" in French.
        before: whether the linked clause may come first.
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


TIMES = (
    Time(("NP", ("NN", "yesterday")), "gestern", "hier", ("past",)),
    Time(("NP", ("JJ", "last"), ("NN", "week")), "letzte Woche", "la semaine dernière", ("past",), "- 1 0"),
    Time(("NP", ("JJ", "last"), ("NN", "month")), "letzten Monat", "le mois dernier", ("past",), "- 1 0"),
    Time(("NP", ("JJ", "last"), ("NN", "year")), "letztes Jahr", "l'année dernière", ("past",), "1 0"),
    Time(("NP", ("NN", "today")), "heute", "aujourd'hui", ("present", "future")),
    Time(("ADVP", ("RB", "now")), "jetzt", "maintenant", ("present",)),
    Time(("NP", ("DT", "every"), ("NN", "day")), "jeden Tag", "tous les jours", ("present",), "0 0 1"),
    Time(("PP", ("IN", "on"), ("NP", ("NNPS", "Sundays"))), "sonntags", "le dimanche", ("present",),
         "0 1", "01"),
    Time(("PP", ("IN", "in"), ("NP", ("DT", "the"), ("NN", "evening"))), "am Abend", "le soir", ("present",),
         "01 2", "01 2"),
    Time(("NP", ("NN", "tomorrow")), "morgen", "demain", ("future",)),
    Time(("NP", ("JJ", "next"), ("NN", "week")), "nächste Woche", "la semaine prochaine", ("future",),
         "- 1 0"),
    Time(("NP", ("JJ", "next"), ("NN", "month")), "nächsten Monat", "le mois prochain", ("future",), "- 1 0"),
    Time(("NP", ("JJ", "next"), ("NN", "year")), "nächstes Jahr", "l'année prochaine", ("future",), "1 0"),
)  # fmt: skip

_SAME = (("present", "present"), ("past", "past"))
_BECAUSE = (*_SAME, ("present", "past"), ("future", "present"))
_WHILE = (("present", "present"),)
_IF = (("present", "present"), ("future", "present"))
_BUT = (*_SAME, ("present", "past"), ("past", "present"), ("present", "future"))
_AND = (*_SAME, ("future", "future"))
LINKS = (
    Link("because", "IN", "weil", "weil", "parce que", "indicative", False, False, _BECAUSE),
    Link("when", "WRB", "wenn", "als", "quand", "indicative", True, False, _SAME),
    Link("while", "IN", "während", "während", "pendant que", "indicative", True, False, _WHILE),
    Link("although", "IN", "obwohl", "obwohl", "bien que", "subjunctive", True, False, _SAME),
    Link("if", "IN", "wenn", "wenn", "si", "indicative", True, False, _IF),
    Link("but", "CC", "aber", "aber", "mais", "indicative", False, True, _BUT),
    Link("and", "CC", "und", "und", "et", "indicative", False, True, _AND),
)

NAMES = (
    ("Anna", "f"), ("Peter", "m"), ("Maria", "f"), ("Paul", "m"), ("Julia", "f"),
    ("Martin", "m"), ("Emma", "f"), ("Oskar", "m"), ("Sophie", "f"), ("Robert", "m"),
)  # fmt: skip

PRONOUNS = ("I", "he", "she", "we", "they")
POSSESSIVES = ("my", "our", "his", "her", "their")
NUMERALS = ("two", "three", "four", "five")
