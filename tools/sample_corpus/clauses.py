"""Random drawing of natural clauses and noun phrases that have one correct wording in every language."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tools.sample_corpus.function_words import (
    COMPANY,
    FOR,
    FREQUENCIES,
    IN,
    MANNERS,
    NAMES,
    NUMERALS,
    POSSESSIVES,
    PRONOUNS,
    SPOTS,
    TIMES,
    Preposition,
)
from tools.sample_corpus.lexicon import ADJECTIVES, BE, NOUNS, VERBS
from tools.sample_corpus.meaning import Both, Clause, Gap, Name, NounPhrase, Phrase, Pronoun
from tools.sample_corpus.words import Adjective, Noun, Verb

T = TypeVar("T")

PERSON = frozenset({"person"})
NATIONS = frozenset({"French", "German", "English"})  # "er ist Deutscher", not "er ist deutsch"
COLOURS = frozenset({"red", "blue", "green", "black", "white", "yellow", "grey"})
PASSING = frozenset(
    {"tired", "happy", "sad", "sick", "curious", "patient", "quiet", "friendly", "brave", "cold"}
)
PAIRED = frozenset({"shoe", "boot"})  # only in the plural
UNOWNED = frozenset(  # "mon homme" and "ma fille" have another meaning
    {"man", "woman", "boy", "girl", "king", "queen", "hero", "princess", "tourist", "policeman"}
)
NOT_ALONGSIDE = {"I": "we", "we": "I"}  # "I see us" is not a sentence


def _nouns_by_class() -> dict[str, tuple[Noun, ...]]:
    names = sorted({name for noun in NOUNS for name in noun.classes})
    return {name: tuple(noun for noun in NOUNS if name in noun.classes) for name in names}


def _suits(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in ADJECTIVES if adjective.classes & noun.classes)


NOUNS_OF = _nouns_by_class()
SUITING = {noun.name: _suits(noun) for noun in NOUNS}
ACTIONS = tuple(verb for verb in VERBS if "clause" not in verb.notes)
INTRANSITIVE = tuple(verb for verb in ACTIONS if not verb.objects)
TRANSITIVE = tuple(verb for verb in ACTIONS if verb.objects and not verb.recipients)
DITRANSITIVE = tuple(verb for verb in ACTIONS if verb.recipients)
SAYING = tuple(verb for verb in VERBS if "clause" in verb.notes)
DIRECT = tuple(verb for verb in TRANSITIVE if verb.plain)
GARMENTS = tuple(noun for noun in NOUNS if "wear" in noun.classes and noun.name not in ("skirt", "dress"))
DESCRIBED = tuple(noun for noun in NOUNS if not noun.mass and len(SUITING[noun.name]) > 4)


class ClauseDrawer:
    """Draws clauses and noun phrases, deterministically for a given state of the random generator.

    Only `random()` of the generator is used, whose numbers are the same in every version of Python.
    """

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random

    def _chance(self, probability: float) -> bool:
        return self._random() < probability

    def _pick(self, choices: Sequence[T]) -> T:
        return choices[int(self._random() * len(choices))]

    def _tense(self) -> str:
        return self._pick(("present", "present", "past", "past", "future"))

    # Clauses

    def _clause(self, tense: str, subject: NounPhrase | None = None, light: bool = False) -> Clause:
        """Draws a clause with a full verb; a `light` one is short, for use inside another phrase."""
        draw = self._random()
        kinds = INTRANSITIVE if draw < 0.25 else TRANSITIVE if draw < 0.83 or light else DITRANSITIVE
        verb = self._verb(kinds, tense, subject)
        if subject is None:
            subject = self._subject(verb.subjects, light)
        clause = Clause(subject, verb, tense, self._modal(verb, tense), self._chance(0.13))
        if clause.negated:
            clause = replace(clause, negated=self._deniable(clause), subject=self._denied_subject(subject))
        clause = self._with_objects(clause, light)
        return self._with_adverbs(clause, light)

    def _verb(self, kinds: tuple[Verb, ...], tense: str, subject: NounPhrase | None) -> Verb:
        classes = _classes(subject)
        while True:
            verb = self._pick(kinds)
            unclear = tense == "past" and verb.english.past == verb.english.base
            if not unclear and (not classes or verb.subjects & classes):
                return verb

    def _modal(self, verb: Verb, tense: str) -> str:
        if tense == "future" or "state" in verb.notes or not self._chance(0.2):
            return ""
        return self._pick(
            ("can", "must", "want", "should") if tense == "present" else ("can", "must", "want")
        )

    @staticmethod
    def _deniable(clause: Clause) -> bool:
        """Returns whether a clause can be negated: "must not" is not a negated "must" in German."""
        return clause.modal != "must" and not isinstance(clause.subject, Both)

    @staticmethod
    def _denied_subject(subject: NounPhrase) -> NounPhrase:
        scoped = isinstance(subject, Phrase) and subject.determiner in ("every", "some", "many", "a")
        return replace(subject, determiner="the") if scoped and isinstance(subject, Phrase) else subject

    def _with_objects(self, clause: Clause, light: bool) -> Clause:
        verb = clause.verb
        if verb.recipients:
            clause = replace(clause, recipient=self._recipient(clause))
        if not verb.objects:
            return clause
        pronoun = "person" in verb.objects and self._chance(0.17) and not _has_relative(clause.subject)
        if pronoun:
            return replace(clause, object=self._other_pronoun(clause.subject))
        if "person" in verb.objects and self._chance(0.1):
            return replace(clause, object=self._other_name(clause.subject))
        bracket = clause.modal or clause.tense == "future" or verb.german.prefix
        relative = not (bracket or light or verb.recipients or clause.negated) and verb.plain
        return replace(clause, object=self._object(clause, verb.objects, light, relative))

    def _object(self, clause: Clause, classes: frozenset[str], light: bool, relative: bool) -> NounPhrase:
        noun = self._noun(classes)
        verb = clause.verb
        if verb.english.preposition == "to" and "person" not in classes:
            return self._place(noun)
        loose = verb.plain and "state" not in verb.notes and verb.german.case == "acc"
        if "wear" in verb.name:
            loose = True
        if clause.negated and not (verb.plain and verb.german.case == "acc"):
            return self._phrase(noun, ("the", "this", *POSSESSIVES), light, relative)
        if noun.mass:
            return self._phrase(
                noun, ("", "", "", "the", *POSSESSIVES) if loose else ("the",), light, relative
            )
        if clause.negated:
            return self._phrase(noun, ("the", "the", "a", "this", *POSSESSIVES), light, relative, bare=loose)
        phrase = self._phrase(noun, None, light, relative, bare=loose)
        if relative or light or verb.recipients or not verb.plain or not self._chance(0.06):
            return phrase
        return Both(phrase, self._phrase(self._noun(classes, but=noun), ("the", "a", *POSSESSIVES), True))

    def _recipient(self, clause: Clause) -> NounPhrase:
        draw = self._random()
        if draw < 0.3:
            return self._other_pronoun(clause.subject)
        if draw < 0.45:
            return self._other_name(clause.subject)
        return self._phrase(self._noun(clause.verb.recipients), ("the", "the", "a", *POSSESSIVES), light=True)

    def _other_pronoun(self, subject: NounPhrase) -> Pronoun:
        own = subject.key if isinstance(subject, Pronoun) else ""
        return Pronoun(self._pick([key for key in PRONOUNS if key not in (own, NOT_ALONGSIDE.get(own))]))

    def _other_name(self, subject: NounPhrase) -> Name:
        names = [subject.left, subject.right] if isinstance(subject, Both) else [subject]
        taken = [name.text for name in names if isinstance(name, Name)]
        return Name(*self._pick([name for name in NAMES if name[0] not in taken]))

    def _with_adverbs(self, clause: Clause, light: bool) -> Clause:
        notes = clause.verb.notes
        must_place = clause.verb.name == "live"
        modifiers = sorted(notes & {"place", "company", "benefit"})
        heavy = _has_relative(clause.object)
        if modifiers and (must_place or (not heavy and self._chance(0.15 if light else 0.3))):
            clause = replace(clause, modifier=self._modifier(self._pick(modifiers)))
        if clause.negated or must_place or heavy:
            return clause
        if "manner" in notes and self._chance(0.2):
            return replace(clause, manner=self._pick(MANNERS))
        if self._chance(0.1) and clause.tense != "future" and not clause.modal and "state" not in notes:
            return self._often(clause)
        return clause

    def _often(self, clause: Clause) -> Clause:
        adverb = self._pick(FREQUENCIES)
        indefinite = isinstance(clause.object, Both) or (
            isinstance(clause.object, Phrase)
            and clause.object.determiner in ("a", "", "some", "many", "every")
        )
        if adverb.negative and (indefinite or self._denied_subject(clause.subject) != clause.subject):
            adverb = FREQUENCIES[0]
        return replace(clause, frequency=adverb)

    def _modifier(self, kind: str) -> tuple[Preposition, NounPhrase]:
        if kind == "company":
            return self._pick(COMPANY), self._companion()
        if kind == "benefit":
            return FOR, self._companion()
        inside = self._chance(0.6)
        noun = self._noun(frozenset({"inside" if inside else "spot"}))
        return IN if inside else self._pick(SPOTS), self._place(noun)

    def _place(self, noun: Noun) -> Phrase:
        phrase = self._phrase(noun, ("the", "the", "the", "our", "this"), light=True)
        return replace(phrase, plural=False)

    def _companion(self) -> NounPhrase:
        if self._chance(0.25):
            return Name(*self._pick(NAMES))
        return self._phrase(self._noun(PERSON), ("the", "a", *POSSESSIVES), light=True)

    def _with_time(self, clause: Clause, first: float = 0.45) -> Clause:
        busy = clause.frequency or (clause.modifier and clause.manner) or "state" in clause.verb.notes
        if busy or _has_relative(clause.object) or not self._chance(0.45):
            return clause
        time = self._pick([time for time in TIMES if clause.tense in time.tenses])
        return replace(clause, time=time, time_first=self._chance(first))

    # Noun phrases

    def _noun(self, classes: frozenset[str], but: Noun | None = None) -> Noun:
        while True:
            noun = self._pick(NOUNS_OF[self._pick(sorted(classes))])
            if noun is not but:
                return noun

    def _subject(self, classes: frozenset[str], light: bool) -> NounPhrase:
        draw = self._random()
        if "person" in classes and draw < 0.22:
            return Pronoun(self._pick(PRONOUNS))
        if "person" in classes and draw < 0.33:
            return Name(*self._pick(NAMES))
        noun = self._noun(classes)
        if draw > 0.94 and not light:
            other = self._phrase(self._noun(classes, but=noun), ("the", "a", *POSSESSIVES), light=True)
            return Both(self._phrase(noun, ("the", "a", *POSSESSIVES), light=True), other)
        return self._phrase(noun, None, light, relative=not light)

    def _phrase(
        self,
        noun: Noun,
        determiners: tuple[str, ...] | None = None,
        light: bool = False,
        relative: bool = False,
        bare: bool = False,
    ) -> Phrase:
        """Draws a noun phrase; without `determiners`, any, with `bare` also none for plural objects."""
        plural = not noun.mass and (noun.name in PAIRED or self._chance(0.3))
        determiner = self._determiner(plural, bare) if determiners is None else self._pick(determiners)
        if plural and determiner == "a":
            determiner = "" if bare else "some"
        if (determiner == "every" and noun.name in PAIRED) or (
            determiner in POSSESSIVES and noun.name in UNOWNED
        ):
            determiner = "the"
        phrase = Phrase(noun, determiner, plural, self._adjectives(noun, 0.3 if light else 0.45))
        owned = determiner == "the" and not (light or noun.mass or noun.name in UNOWNED)
        if owned and self._chance(0.14):
            phrase = replace(phrase, owner=self._owner(noun))
        elif (
            self._chance(0.1) and noun.person and not (light or plural) and determiner in ("the", "a", "this")
        ):
            phrase = replace(phrase, garment=self._garment())
        elif relative and determiner in ("the", "a", "my") and not noun.mass and self._chance(0.16):
            phrase = replace(phrase, relative=self._relative(phrase))
        return phrase

    def _determiner(self, plural: bool, bare: bool) -> str:
        draw = self._random()
        if draw < 0.45:
            return "the"
        if draw < 0.65:
            return self._pick(POSSESSIVES)
        if draw < 0.73:
            return "this"
        if not plural:
            return "a" if draw < 0.93 else "every"
        if bare and draw < 0.85:
            return ""
        return "some" if draw < 0.9 else self._pick((*NUMERALS, "many"))

    def _adjectives(self, noun: Noun, probability: float) -> tuple[Adjective, ...]:
        if not self._chance(probability):
            return ()
        suiting = SUITING[noun.name]
        first = self._pick(suiting)
        inner = [adjective for adjective in suiting if adjective.place == "inner"]
        if first.place == "outer" and inner and self._chance(0.3):
            return first, self._pick(inner)
        return (first,)

    def _quality(self, noun: Noun) -> Adjective:
        return self._pick([adjective for adjective in SUITING[noun.name] if adjective.name not in NATIONS])

    def _owner(self, owned: Noun) -> Phrase | Name:
        if self._chance(0.4):
            return Name(*self._pick(NAMES))
        noun = self._noun(PERSON, but=owned)
        return Phrase(noun, self._pick(("the", "the", *POSSESSIVES)), self._chance(0.2))

    def _garment(self) -> Phrase:
        noun = self._pick(GARMENTS)
        colours = [adjective for adjective in SUITING[noun.name] if adjective.name in COLOURS]
        return Phrase(noun, "the", noun.name in PAIRED, (self._pick(colours),))

    def _relative(self, antecedent: Phrase) -> Clause:
        gap = Gap(antecedent)
        tense = self._pick(("present", "past"))
        classes = antecedent.noun.classes
        verbs = [
            verb
            for verb in DIRECT
            if verb.objects & classes and not (tense == "past" and verb.name == "read")
        ]
        if verbs and self._chance(0.45 if classes & {"person", "animal"} else 1.0):
            verb = self._pick(verbs)
            return Clause(self._subject(verb.subjects, light=True), verb, tense, object=gap)
        if classes & {"person", "animal"}:
            return self._clause(tense, gap, light=True)
        return Clause(gap, BE, tense, quality=self._quality(antecedent.noun))


def _classes(subject: NounPhrase | None) -> frozenset[str]:
    """Returns classes of which a verb's subject must have one; empty if any will do."""
    if isinstance(subject, Gap):
        return subject.antecedent.noun.classes & {"person", "animal"} if subject.antecedent else PERSON
    return frozenset()


def _has_relative(phrase: NounPhrase | None) -> bool:
    return isinstance(phrase, Phrase) and phrase.relative is not None
