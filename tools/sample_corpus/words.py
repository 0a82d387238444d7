"""Words of the grammar in three languages, and readers of the tables in `lexicon`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Noun:
    """A noun in three languages; `name` (the English singular) identifies it."""

    name: str
    english_plural: str
    german: str
    german_gender: str  # "m", "f", "n"
    german_oblique: str  # accusative and dative singular; differs from `german` for weak nouns only
    german_genitive: str
    german_plural: str
    french: str
    french_gender: str  # "m", "f"
    french_plural: str
    classes: frozenset[str]

    @property
    def mass(self) -> bool:
        """True for mass nouns, which have no plural."""
        return "mass" in self.classes

    @property
    def person(self) -> bool:
        """True for nouns of persons."""
        return "person" in self.classes


@dataclass(frozen=True)
class Adjective:
    """An adjective; `german_stem` takes endings, `french` is (m, f, m plural, f plural, m before a vowel)."""

    name: str
    comparative: str  # "older", "more expensive"; "" for none
    german: str
    german_stem: str
    german_comparative: str
    french: tuple[str, str, str, str, str]
    french_before: bool
    classes: frozenset[str]
    place: str  # of two: "outer" first, "inner" second; "alone" never with another one


@dataclass(frozen=True)
class EnglishVerb:
    """Base form, third person singular and past, with a particle and the object's preposition."""

    base: str
    third: str
    past: str
    particle: str = ""
    preposition: str = ""


@dataclass(frozen=True)
class GermanVerb:
    """Present forms for ich, er, wir and past forms for er, wir, without the separable prefix."""

    infinitive: str
    first: str
    third: str
    plural: str
    past: str
    past_plural: str
    prefix: str = ""
    preposition: str = ""
    case: str = "acc"


@dataclass(frozen=True)
class FrenchVerb:
    """Present forms for je, il, nous, ils, the past participle and the stem of the future."""

    infinitive: str
    first: str
    third: str
    first_plural: str
    third_plural: str
    participle: str
    future: str
    _: KW_ONLY
    be: bool = False  # passé composé with être
    reflexive: bool = False
    preposition: str = ""
    tail: str = ""  # fixed words after the verb, such as "les courses" in "faire les courses"


@dataclass(frozen=True)
class Verb:
    """A verb with the classes of its subjects and objects.

    Attributes:
        name: base form with its particle or preposition, such as "wait for"; unique.
        recipients: classes of the indirect object; empty if there is none.
        notes: "state" (past is the French imparfait, no indefinite generic objects), "manner", "place",
            "company", "benefit" (what may modify it), "clause" (takes a that-clause).
    """

    name: str
    english: EnglishVerb
    german: GermanVerb
    french: FrenchVerb
    subjects: frozenset[str]
    objects: frozenset[str]
    recipients: frozenset[str]
    notes: frozenset[str]

    @property
    def plain(self) -> bool:
        """True if the object has no preposition in any of the languages."""
        return not (self.english.preposition or self.german.preposition or self.french.preposition)


def read_rows(table: str) -> list[list[str]]:
    """Splits a table into lines and cells, which are separated by `|`."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def read_noun(row: list[str]) -> Noun:
    """Reads English [plural] | gender noun [+genitive] plural | gender noun [plural] | classes.

    German: `+x` appends to the noun, `=` repeats it; "w" is a weak masculine, followed by its oblique form.
    """
    english, german, french, classes = row
    name, *plural = english.split()
    gender, word, *rest = german.split()
    rest = [_extend(word, form) for form in rest]
    german_plural = rest[-1] if rest else word
    oblique = german_plural if gender == "w" else word
    genitive = {"w": oblique, "f": word}.get(gender) or rest[0]
    french_gender, french_word, *french_plural = french.split()
    return Noun(
        name=name,
        english_plural=plural[0] if plural else f"{name}s",
        german=word,
        german_gender="m" if gender == "w" else gender,
        german_oblique=oblique,
        german_genitive=genitive,
        german_plural=german_plural,
        french=french_word,
        french_gender=french_gender,
        french_plural=french_plural[0] if french_plural else f"{french_word}s",
        classes=frozenset(classes.split()),
    )


def read_adjective(row: list[str]) -> Adjective:
    """Reads English [comparative] | German[/stem] comparative | [<] m f [m pl. [vowel]] | classes | place."""
    english, german, french, classes, place = row
    name, _, comparative = english.partition(" ")
    german_word, _, german_comparative = german.partition(" ")
    german_base, _, stem = german_word.partition("/")
    before = french.startswith("<")
    masculine, feminine, *more = french.removeprefix("<").split()
    plural = more[0] if more else (masculine if masculine[-1] in "sx" else f"{masculine}s")
    vowel = more[1] if len(more) > 1 else masculine
    return Adjective(
        name=name,
        comparative=comparative,
        german=german_base,
        german_stem=stem or german_base,
        german_comparative=german_comparative,
        french=(masculine, feminine, plural, f"{feminine}s", vowel),
        french_before=before,
        classes=frozenset(classes.split()),
        place=place,
    )


def read_verb(row: list[str]) -> Verb:
    """Reads English | German | French | subjects [: objects [: recipients]] | notes; see `lexicon`."""
    english_cell, german_cell, french_cell, roles, notes = row
    english = _read_english_verb(english_cell)
    subjects, objects, recipients = (*roles.split(":"), "", "")[:3]
    return Verb(
        name=" ".join(filter(None, (english.base, english.particle, english.preposition))),
        english=english,
        german=_read_german_verb(german_cell),
        french=_read_french_verb(french_cell),
        subjects=frozenset(subjects.split()),
        objects=frozenset(objects.split()),
        recipients=frozenset(recipients.split()),
        notes=frozenset(notes.split()),
    )


def _extend(word: str, form: str) -> str:
    if form == "=":
        return word
    return word + form[1:] if form.startswith("+") else form


def _take(words: list[str], mark: str) -> str:
    """Removes the word that starts with `mark` and returns what follows the mark."""
    for word in words:
        if word.startswith(mark):
            words.remove(word)
            return word.removeprefix(mark)
    return ""


def _read_english_verb(cell: str) -> EnglishVerb:
    words = cell.split()
    preposition = _take(words, "@")
    particle = _take(words, "+")
    base, *forms = words
    third, past = forms or (english_third(base), english_past(base))
    return EnglishVerb(base, third, past, particle, preposition)


def english_third(base: str) -> str:
    """Returns the third person singular present of a regular English verb."""
    if base.endswith(("s", "x", "ch", "sh")):
        return f"{base}es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}s"


def english_past(base: str) -> str:
    """Returns the past tense of a regular English verb that doubles no consonant."""
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}ed"


def _read_german_verb(cell: str) -> GermanVerb:
    words = cell.split()
    preposition, _, case = _take(words, "@").rpartition(".")
    prefixed, *forms = words
    prefix, _, infinitive = prefixed.rpartition("+")
    stem = infinitive.removesuffix("n").removesuffix("e")
    link = "e" if stem[-1] in "td" else ""
    third, past = forms[:2] if forms else (f"{stem}{link}t", f"{stem}{link}te")
    first = forms[2] if len(forms) > 2 else f"{stem}e"
    past_plural = f"{past}n" if past.endswith("e") else f"{past}en"
    return GermanVerb(
        infinitive, first, third, infinitive, past, past_plural, prefix, preposition, case or "acc"
    )


def _read_french_verb(cell: str) -> FrenchVerb:
    cell, _, tail = cell.partition(" : ")
    words = cell.split()
    preposition = _take(words, "@")
    reflexive = "se" in words
    be = "!" in words or reflexive
    infinitive, *forms = [word for word in words if word not in ("se", "!")]
    if not forms:
        stem = infinitive.removesuffix("er")
        soft = f"{stem}e" if stem.endswith("g") else stem
        forms = [f"{stem}e", f"{stem}e", f"{soft}ons", f"{stem}ent", f"{stem}é", infinitive]
    return FrenchVerb(infinitive, *forms, be=be, reflexive=reflexive, preposition=preposition, tail=tail)
