"""English: the Penn Treebank tree of a meaning, whose leaves are the sentence.

A tree is a tuple `(label, child, ...)`; a leaf is `(tag, word, part, ...)`, with the parts of the
meaning that the word expresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from tools.sample_corpus.alignment import Word, word
from tools.sample_corpus.function_words import NUMERALS, POSSESSIVES, Adverb, Link
from tools.sample_corpus.meaning import (
    Both,
    Clause,
    Gap,
    Name,
    NounPhrase,
    Phrase,
    Pronoun,
    Sentence,
    is_first_person,
    is_plural,
)

Tree = tuple

OBJECT_FORMS = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
DETERMINER_TAGS = {"many": "JJ", **dict.fromkeys(NUMERALS, "CD"), **dict.fromkeys(POSSESSIVES, "PRP$")}
MODALS = {
    ("can", "present"): "can",
    ("can", "past"): "could",
    ("must", "present"): "must",
    ("should", "present"): "should",
}
SHORTENED = {"can": "ca", "will": "wo"}
QUESTION_WORDS = {
    "who": ("WHNP", ("WP", "who")),
    "what": ("WHNP", ("WP", "what")),
    "where": ("WHADVP", ("WRB", "where")),
    "why": ("WHADVP", ("WRB", "why")),
    "when": ("WHADVP", ("WRB", "when")),
}
PARTICLES = {"asleep": ("ADJP", "JJ"), "back": ("ADVP", "RB")}
COMMA = (",", ",")
STOP = (".", ".")
ATTACHED = frozenset({",", ".", "?", "n't", "'s", "'"})


def sentence(meaning: Sentence) -> Tree:
    """Returns the tree of a sentence with its first word capitalised."""
    return _capitalised(_sentence(meaning))


def words(tree: Tree) -> list[Word]:
    """Returns the words of a tree and its marks, from left to right."""
    return [word(*leaf[1:]) for leaf in _leaves(tree)]


def bracketing(tree: Tree) -> str:
    """Returns the tree on one line: `(S (NP (PRP He)) (VP (VBZ sleeps)) (. .))`."""
    if isinstance(tree[1], str):
        return f"({tree[0]} {tree[1]})"
    return f"({tree[0]} {' '.join(map(bracketing, tree[1:]))})"


def text(tree: Tree) -> str:
    """Returns the sentence with punctuation and clitics joined to the word before."""
    written = [leaf[1] for leaf in _leaves(tree)]
    return "".join([item if item in ATTACHED else f" {item}" for item in written]).lstrip()


def _leaves(tree: Tree) -> list[Tree]:
    """Returns the leaves of a tree, from left to right."""
    found, following = [], [tree]
    while following:
        node = following.pop()
        if isinstance(node[1], str):
            found.append(node)
        else:
            following += node[:0:-1]
    return found


def _capitalised(tree: Tree) -> Tree:
    label, first, *rest = tree
    if isinstance(first, str):
        return label, first[0].upper() + first[1:], *rest
    return label, _capitalised(first), *rest


def _sentence(meaning: Sentence) -> Tree:
    if meaning.kind != "statement":
        return _question(meaning)
    link, linked = meaning.link, meaning.linked
    if link is None or linked is None:
        return "S", *_clause(meaning.clause), STOP
    if link.joins:
        first, second = ("S", *_clause(meaning.clause)), ("S", *_clause(linked))
        return "S", first, COMMA, (link.tag, link.english, linked, "link"), second, STOP
    subordinate = _subordinate(link, linked)
    if meaning.link_first:
        return "S", subordinate, COMMA, *_clause(meaning.clause), STOP
    return "S", *_clause(meaning.clause, subordinate), STOP


def _subordinate(link: Link, clause: Clause) -> Tree:
    conjunction: Tree = (link.tag, link.english, clause, "link")
    if link.tag == "WRB":
        conjunction = ("WHADVP", conjunction)
    return "SBAR", conjunction, ("S", *_clause(clause))


def _question(meaning: Sentence) -> Tree:
    clause = meaning.clause
    if meaning.kind == "who":
        body: Tree = ("SQ", *_clause(clause))
    else:
        body = ("SQ", *_inverted(clause))
    mark = (".", "?", clause, "?")
    if meaning.kind == "whether":
        return *body, mark
    label, (tag, text) = QUESTION_WORDS[meaning.kind]
    return "SBARQ", (label, (tag, text, clause, "question")), body, mark


def _inverted(clause: Clause) -> list[Tree]:
    verbs = _verbs(clause, support=clause.verb.name != "be")
    adverb = [_adverb(clause.frequency, clause)] if clause.frequency else []
    rest = [_chain(verbs[1:], _complements(clause))] if len(verbs) > 1 else _complements(clause)
    return [(*verbs[0], "inversion"), *_subject(clause), *adverb, *rest]


def _clause(clause: Clause, tail: Tree | None = None) -> list[Tree]:
    """The children of S; `tail` is a subordinate clause that ends the verb phrase."""
    front = [_time(clause.time.tree, clause, count()), COMMA] if clause.time and clause.time_first else []
    verbs = _verbs(clause, support=clause.negated and clause.verb.name != "be")
    complements = _complements(clause) + ([tail] if tail else [])
    after_first = [("RB", "n't", clause, "not")] if clause.negated else []
    before_verb: list[Tree] = []
    if clause.frequency:
        inside = verbs[0][0] == "MD" or clause.verb.name == "be"
        (after_first if inside else before_verb).append(_adverb(clause.frequency, clause))
    if clause.negated:
        tag, finite, *parts = verbs[0]
        verbs[0] = (tag, SHORTENED.get(finite, finite), *parts)
    return [*front, *_subject(clause), *before_verb, _chain(verbs, complements, after_first)]


def _subject(clause: Clause) -> list[Tree]:
    return [] if isinstance(clause.subject, Gap) else [_noun_phrase(clause.subject, subject=True)]


def _verbs(clause: Clause, support: bool) -> list[Tree]:
    """Returns the verbs from the finite one on; `support` adds "do" where there is no other auxiliary."""
    forms = clause.verb.english
    roles = ("verb",) if forms.particle or forms.preposition else ("verb", "particle")
    bare = ("VB", forms.base, clause, *roles)
    if clause.tense == "future":
        return [("MD", "will", clause, "tense"), bare]
    modal = MODALS.get((clause.modal, clause.tense))
    if modal:
        return [("MD", modal, clause, "tense", "modal"), bare]
    if not clause.modal:
        finite = (forms.base, forms.third, forms.past)
        return [_do(clause), bare] if support else [_finite(clause, finite, *roles)]
    finite = ("want", "wants", "wanted") if clause.modal == "want" else ("have", "has", "had")
    infinitive = ("VB", finite[0], clause, "modal")
    return [*([_do(clause), infinitive] if support else [_finite(clause, finite, "modal")]), bare]


def _do(clause: Clause) -> Tree:
    return _finite(clause, ("do", "does", "did"))


def _finite(clause: Clause, forms: tuple[str, str, str], *roles: str) -> Tree:
    base, third, past = forms
    plural, first = is_plural(clause.subject), is_first_person(clause.subject)
    if base == "be":
        base = "am" if first and not plural else "are"
        past = "were" if plural else "was"
    if clause.tense == "past":
        return "VBD", past, clause, "tense", *roles
    tag, form = ("VBP", base) if plural or first else ("VBZ", third)
    return tag, form, clause, "tense", *roles


def _chain(verbs: list[Tree], complements: list[Tree], after_first: list[Tree] | None = None) -> Tree:
    """Nests verb phrases; an infinitive takes "to" except after an auxiliary."""
    *outer, last = verbs
    inserts = after_first or []
    if not outer:
        return "VP", last, *inserts, *complements
    tree: Tree = ("VP", last, *complements)
    for index, verb in reversed(list(enumerate(outer))):
        auxiliary = verb[0] == "MD" or verb[1] in ("do", "does", "did")
        parts = last[2:] if verb[1].startswith("want") else verb[2:]
        body = tree if auxiliary else ("S", ("VP", ("TO", "to", *parts), tree))
        tree = ("VP", verb, *(inserts if index == 0 else []), body)
    return tree


def _complements(clause: Clause) -> list[Tree]:
    found: list[Tree] = []
    if clause.quality:
        found.append(_quality(clause))
    if clause.recipient:
        found.append(_noun_phrase(clause.recipient))
    found += _object(clause)
    if clause.manner:
        found.append(_adverb(clause.manner, clause))
    if clause.modifier:
        preposition, phrase = clause.modifier
        found.append(_prepositional(preposition.english, phrase, clause, "place"))
    if clause.time and not clause.time_first:
        found.append(_time(clause.time.tree, clause, count()))
    if clause.content:
        found.append(("SBAR", ("IN", "that", clause.content, "link"), ("S", *_clause(clause.content))))
    return found


def _object(clause: Clause) -> list[Tree]:
    forms, target = clause.verb.english, clause.object
    particle = _particle(clause) if forms.particle else []
    if target is None or isinstance(target, Gap):
        return particle
    if forms.preposition:
        return [*particle, _prepositional(forms.preposition, target, clause, "particle")]
    phrase = _noun_phrase(target)
    return [phrase, *particle] if isinstance(target, Pronoun) else [*particle, phrase]


def _particle(clause: Clause) -> list[Tree]:
    """Returns the particle; an adjective such as "asleep" has the meaning of the verb too."""
    text = clause.verb.english.particle
    label, tag = PARTICLES.get(text, ("PRT", "RP"))
    roles = ("verb", "particle") if tag == "JJ" else ("particle",)
    return [(label, (tag, text, clause, *roles))]


def _quality(clause: Clause) -> Tree:
    assert clause.quality is not None
    if clause.than is None:
        return "ADJP", ("JJ", clause.quality.name, clause, "quality")
    more, _, text = clause.quality.comparative.rpartition(" ")
    compared: list[Tree] = [("JJR", text, clause, "more", "quality")]
    if more:
        compared = [("RBR", more, clause, "more"), ("JJ", text, clause, "quality")]
    return "ADJP", *compared, _prepositional("than", clause.than, clause, "than")


def _adverb(adverb: Adverb, clause: Clause) -> Tree:
    return "ADVP", ("RB", adverb.english, clause, adverb.english)


def _time(tree: Tree, clause: Clause, numbers: Iterator[int]) -> Tree:
    """Returns the tree of a time; the roles of its words are their numbers."""
    label, first, *rest = tree
    if isinstance(first, str):
        return label, first, clause, str(next(numbers))
    return label, *(_time(child, clause, numbers) for child in (first, *rest))


def _prepositional(preposition: str, phrase: NounPhrase, *parts: object) -> Tree:
    tag = "TO" if preposition == "to" else "IN"
    return "PP", (tag, preposition, *parts), _noun_phrase(phrase)


def _noun_phrase(phrase: NounPhrase, subject: bool = False) -> Tree:
    if isinstance(phrase, Pronoun):
        return "NP", ("PRP", phrase.key if subject else OBJECT_FORMS[phrase.key], phrase, "head")
    if isinstance(phrase, Name):
        return "NP", ("NNP", phrase.text, phrase, "head")
    if isinstance(phrase, Both):
        return "NP", _noun_phrase(phrase.left), ("CC", "and", phrase, "and"), _noun_phrase(phrase.right)
    assert isinstance(phrase, Phrase)
    tree = _core(phrase)
    if phrase.garment:
        tree = ("NP", tree, _prepositional("with", phrase.garment, phrase, "with"))
    if phrase.relative:
        tree = ("NP", tree, _relative(phrase, phrase.relative))
    return tree


def _core(phrase: Phrase) -> Tree:
    noun = phrase.noun
    words = [("JJ", adjective.name, phrase, adjective.name) for adjective in phrase.adjectives]
    tag, form = ("NNS", noun.english_plural) if phrase.plural else ("NN", noun.name)
    words.append((tag, form, phrase, "head"))
    if phrase.owner:
        return "NP", _owner(phrase.owner), *words
    return "NP", *_determiner(phrase, words[0][1]), *words


def _owner(owner: Phrase | Name) -> Tree:
    mark = "'" if is_plural(owner) and text(_noun_phrase(owner)).endswith("s") else "'s"
    return *_noun_phrase(owner), ("POS", mark, owner, "of")


def _determiner(phrase: Phrase, following: str) -> list[Tree]:
    key = phrase.determiner
    if not key:
        return []
    text = {"this": "these"}.get(key, key) if phrase.plural else key
    if key == "a" and following[0].lower() in "aeiou":
        text = "an"
    return [(DETERMINER_TAGS.get(key, "DT"), text, phrase, "determiner")]


def _relative(antecedent: Phrase, clause: Clause) -> Tree:
    who = isinstance(clause.subject, Gap) and antecedent.noun.person
    tag, text = ("WP", "who") if who else ("WDT", "that")
    return "SBAR", ("WHNP", (tag, text, clause, "relative")), ("S", *_clause(clause))
