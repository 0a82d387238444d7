"""Meanings of sentences: the trees, independent of a language, that the three linearisers share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tools.sample_corpus.function_words import Adverb, Link, Preposition, Time
from tools.sample_corpus.words import Adjective, Noun, Verb


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun with its dependents; `determiner` is the English one, "" for none."""

    noun: Noun
    determiner: str = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: Phrase | Name | None = None
    garment: Phrase | None = None
    relative: Clause | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A person's name, the same in all three languages."""

    text: str
    gender: str


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun by its English subject form: I, he, she, we, they."""

    key: str


@dataclass(frozen=True, slots=True)
class Both:
    """Two noun phrases joined by "and"."""

    left: Phrase | Name
    right: Phrase | Name


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap of a relative or question word; `antecedent` is `None` in a question."""

    antecedent: Phrase | None = None


NounPhrase = Phrase | Name | Pronoun | Both | Gap


@dataclass(frozen=True, slots=True)
class Clause:
    """One finite clause.

    Attributes:
        tense: "present", "past" or "future".
        modal: "", "can", "must", "want" or "should"; "should" only in the present, none in the future.
        quality: predicate adjective of "be"; in the comparative if there is a `than`.
        modifier: preposition and noun phrase of place, company or benefit.
        content: the that-clause of a verb such as "say".
    """

    subject: NounPhrase
    verb: Verb
    tense: str = "present"
    modal: str = ""
    negated: bool = False
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    quality: Adjective | None = None
    than: NounPhrase | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    modifier: tuple[Preposition, NounPhrase] | None = None
    time: Time | None = None
    time_first: bool = False
    content: Clause | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A clause, and optionally a second one that is joined to it by `link`.

    Attributes:
        kind: "statement", "whether" (a yes/no question), "who", "what", "where", "why" or "when".
        link_first: whether the linked clause comes first.
    """

    clause: Clause
    kind: str = "statement"
    link: Link | None = None
    linked: Clause | None = None
    link_first: bool = False


def is_plural(phrase: NounPhrase) -> bool:
    """Returns whether a verb agrees with the phrase in the plural."""
    if isinstance(phrase, Phrase):
        return phrase.plural
    if isinstance(phrase, Gap):
        return phrase.antecedent is not None and phrase.antecedent.plural
    if isinstance(phrase, Pronoun):
        return phrase.key in ("we", "they")
    return isinstance(phrase, Both)


def is_first_person(phrase: NounPhrase) -> bool:
    """Returns whether a verb agrees with the phrase in the first person."""
    return isinstance(phrase, Pronoun) and phrase.key in ("I", "we")


def combinations(sentence: Sentence) -> Iterator[tuple[str, str]]:
    """Yields the word pairs of a sentence: (adjective, its noun) and (verb, noun of object or recipient)."""
    yield from _clause_pairs(sentence.clause)
    if sentence.linked:
        yield from _clause_pairs(sentence.linked)


def _clause_pairs(clause: Clause) -> Iterator[tuple[str, str]]:
    for argument in (clause.object, clause.recipient):
        for noun in _heads(argument):
            yield clause.verb.name, noun.name
    if clause.quality:
        for noun in _heads(clause.subject):
            yield clause.quality.name, noun.name
    inner = clause.modifier[1] if clause.modifier else None
    for phrase in (clause.subject, clause.object, clause.recipient, clause.than, inner):
        yield from _phrase_pairs(phrase)
    if clause.content:
        yield from _clause_pairs(clause.content)


def _heads(phrase: NounPhrase | None) -> Iterator[Noun]:
    if isinstance(phrase, Phrase):
        yield phrase.noun
    elif isinstance(phrase, Gap) and phrase.antecedent:
        yield phrase.antecedent.noun
    elif isinstance(phrase, Both):
        yield from _heads(phrase.left)
        yield from _heads(phrase.right)


def _phrase_pairs(phrase: NounPhrase | None) -> Iterator[tuple[str, str]]:
    if isinstance(phrase, Both):
        yield from _phrase_pairs(phrase.left)
        yield from _phrase_pairs(phrase.right)
    if not isinstance(phrase, Phrase):
        return
    for adjective in phrase.adjectives:
        yield adjective.name, phrase.noun.name
    yield from _phrase_pairs(phrase.owner)
    yield from _phrase_pairs(phrase.garment)
    if phrase.relative:
        yield from _clause_pairs(phrase.relative)
