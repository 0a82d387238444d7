"""What a sentence means, before any language: the tree that the three linearisers share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t2t_revival.data.grammar.function_words import Adverb, Link, Preposition, Time
from t2t_revival.data.grammar.words import Adjective, Noun, Verb


@dataclass(frozen=True)
class Phrase:
    """A noun with what hangs on it; `determiner` is a key of `function_words`, "" for none."""

    noun: Noun
    determiner: str = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: Phrase | Name | None = None
    garment: Phrase | None = None
    relative: Clause | None = None


@dataclass(frozen=True)
class Name:
    """A person's name, the same in all three languages."""

    text: str
    gender: str


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun by its English subject form: I, he, she, we, they."""

    key: str


@dataclass(frozen=True)
class Both:
    """Two noun phrases joined by "and"."""

    left: Phrase | Name
    right: Phrase | Name


@dataclass(frozen=True)
class Gap:
    """The place that a relative or question word has left; `antecedent` is None in a question."""

    antecedent: Phrase | None = None


NounPhrase = Phrase | Name | Pronoun | Both | Gap


@dataclass(frozen=True)
class Clause:
    """One finite clause.

    Attributes:
        tense: "present", "past" or "future".
        modal: "", "can", "must", "want" or "should"; "should" only in the present, none in the future.
        quality: predicate adjective of "be"; with `than`, compared.
        modifier: preposition and noun phrase that tell place, company or benefit.
        content: the that-clause of verbs such as "say".
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


@dataclass(frozen=True)
class Sentence:
    """A clause, and a second one tied to it by `link`.

    Attributes:
        kind: "statement", "whether" (a yes/no question), "who", "what", "where", "why" or "when".
        link_first: whether the linked clause stands first.
    """

    clause: Clause
    kind: str = "statement"
    link: Link | None = None
    linked: Clause | None = None
    link_first: bool = False


def is_plural(phrase: NounPhrase) -> bool:
    """Whether a verb agrees with the phrase in the plural."""
    if isinstance(phrase, Phrase):
        return phrase.plural
    if isinstance(phrase, Gap):
        return phrase.antecedent is not None and phrase.antecedent.plural
    if isinstance(phrase, Pronoun):
        return phrase.key in ("we", "they")
    return isinstance(phrase, Both)


def is_first_person(phrase: NounPhrase) -> bool:
    return isinstance(phrase, Pronoun) and phrase.key in ("I", "we")


def combinations(sentence: Sentence) -> Iterator[tuple[str, str]]:
    """The word pairs of a sentence: (adjective, its noun) and (verb, noun of its object or recipient)."""
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
