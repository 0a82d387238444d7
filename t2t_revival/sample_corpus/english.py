"""English: the Penn Treebank tree of a meaning, whose leaves are the sentence.

A tree is a tuple `(label, child, ...)`; a leaf is `(tag, word)`.
"""

from __future__ import annotations

from t2t_revival.sample_corpus.function_words import NUMERALS, POSSESSIVES, Adverb, Link
from t2t_revival.sample_corpus.meaning import (
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
    ("can", "present"): ("MD", "can"),
    ("can", "past"): ("MD", "could"),
    ("must", "present"): ("MD", "must"),
    ("should", "present"): ("MD", "should"),
}
SHORTENED = {"can": "ca", "will": "wo"}
QUESTION_WORDS = {
    "who": ("WHNP", ("WP", "who")),
    "what": ("WHNP", ("WP", "what")),
    "where": ("WHADVP", ("WRB", "where")),
    "why": ("WHADVP", ("WRB", "why")),
    "when": ("WHADVP", ("WRB", "when")),
}
PARTICLES = {"asleep": ("ADJP", ("JJ", "asleep")), "back": ("ADVP", ("RB", "back"))}
ATTACHED = frozenset({",", ".", "?", "n't", "'s", "'"})


def sentence(meaning: Sentence) -> Tree:
    """Returns the tree of a sentence with its first word capitalised."""
    return _capitalised(_sentence(meaning))


def leaves(tree: Tree) -> list[str]:
    """Returns the words of a tree, from left to right."""
    if isinstance(tree[1], str):
        return [tree[1]]
    return [word for child in tree[1:] for word in leaves(child)]


def bracketing(tree: Tree) -> str:
    """Returns the tree on one line: `(S (NP (PRP He)) (VP (VBZ sleeps)) (. .))`."""
    if isinstance(tree[1], str):
        return f"({tree[0]} {tree[1]})"
    return f"({tree[0]} {' '.join(map(bracketing, tree[1:]))})"


def text(tree: Tree) -> str:
    """Returns the sentence with punctuation and clitics joined to the word before."""
    return "".join(word if word in ATTACHED else f" {word}" for word in leaves(tree)).lstrip()


def _capitalised(tree: Tree) -> Tree:
    label, first, *rest = tree
    if isinstance(first, str):
        return label, first[0].upper() + first[1:]
    return label, _capitalised(first), *rest


def _sentence(meaning: Sentence) -> Tree:
    if meaning.kind != "statement":
        return _question(meaning)
    stop = (".", ".")
    link, linked = meaning.link, meaning.linked
    if link is None or linked is None:
        return "S", *_clause(meaning.clause), stop
    if link.joins:
        first, second = ("S", *_clause(meaning.clause)), ("S", *_clause(linked))
        return "S", first, (",", ","), (link.tag, link.english), second, stop
    subordinate = _subordinate(link, linked)
    if meaning.link_first:
        return "S", subordinate, (",", ","), *_clause(meaning.clause), stop
    return "S", *_clause(meaning.clause, subordinate), stop


def _subordinate(link: Link, clause: Clause) -> Tree:
    word: Tree = (link.tag, link.english)
    if link.tag == "WRB":
        word = ("WHADVP", word)
    return "SBAR", word, ("S", *_clause(clause))


def _question(meaning: Sentence) -> Tree:
    clause = meaning.clause
    if meaning.kind == "who":
        body: Tree = ("SQ", *_clause(clause))
    else:
        body = ("SQ", *_inverted(clause))
    if meaning.kind == "whether":
        return (*body, (".", "?"))
    return "SBARQ", QUESTION_WORDS[meaning.kind], body, (".", "?")


def _inverted(clause: Clause) -> list[Tree]:
    verbs = _verbs(clause, support=clause.verb.name != "be")
    adverb = [_adverb(clause.frequency)] if clause.frequency else []
    rest = [_chain(verbs[1:], _complements(clause))] if len(verbs) > 1 else _complements(clause)
    return [verbs[0], *_subject(clause), *adverb, *rest]


def _clause(clause: Clause, tail: Tree | None = None) -> list[Tree]:
    """The children of S; `tail` is a subordinate clause that ends the verb phrase."""
    front = [clause.time.tree, (",", ",")] if clause.time and clause.time_first else []
    verbs = _verbs(clause, support=clause.negated and clause.verb.name != "be")
    complements = _complements(clause) + ([tail] if tail else [])
    after_first = [("RB", "n't")] if clause.negated else []
    before_verb: list[Tree] = []
    if clause.frequency:
        inside = verbs[0][0] == "MD" or clause.verb.name == "be"
        (after_first if inside else before_verb).append(_adverb(clause.frequency))
    if clause.negated:
        tag, word = verbs[0]
        verbs[0] = (tag, SHORTENED.get(word, word))
    return [*front, *_subject(clause), *before_verb, _chain(verbs, complements, after_first)]


def _subject(clause: Clause) -> list[Tree]:
    return [] if isinstance(clause.subject, Gap) else [_noun_phrase(clause.subject, subject=True)]


def _verbs(clause: Clause, support: bool) -> list[Tree]:
    """Returns the verbs from the finite one on; `support` adds "do" where there is no other auxiliary."""
    forms = clause.verb.english
    if clause.tense == "future":
        return [("MD", "will"), ("VB", forms.base)]
    modal = MODALS.get((clause.modal, clause.tense))
    if modal:
        return [modal, ("VB", forms.base)]
    if not clause.modal:
        finite = _finite(clause, forms.base, forms.third, forms.past)
        return [*_do(clause), ("VB", forms.base)] if support else [finite]
    base, third, past = ("want", "wants", "wanted") if clause.modal == "want" else ("have", "has", "had")
    first = [*_do(clause), ("VB", base)] if support else [_finite(clause, base, third, past)]
    return [*first, ("VB", forms.base)]


def _do(clause: Clause) -> list[Tree]:
    return [_finite(clause, "do", "does", "did")]


def _finite(clause: Clause, base: str, third: str, past: str) -> Tree:
    plural, first = is_plural(clause.subject), is_first_person(clause.subject)
    if base == "be":
        base = "am" if first and not plural else "are"
        past = "were" if plural else "was"
    if clause.tense == "past":
        return "VBD", past
    return ("VBP", base) if plural or first else ("VBZ", third)


def _chain(verbs: list[Tree], complements: list[Tree], after_first: list[Tree] | None = None) -> Tree:
    """Nests verb phrases; an infinitive takes "to" except after an auxiliary."""
    *outer, last = verbs
    inserts = after_first or []
    if not outer:
        return "VP", last, *inserts, *complements
    tree: Tree = ("VP", last, *complements)
    for index, verb in reversed(list(enumerate(outer))):
        auxiliary = verb[0] == "MD" or verb[1] in ("do", "does", "did")
        body = tree if auxiliary else ("S", ("VP", ("TO", "to"), tree))
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
        found.append(_adverb(clause.manner))
    if clause.modifier:
        preposition, phrase = clause.modifier
        found.append(_prepositional(preposition.english, phrase))
    if clause.time and not clause.time_first:
        found.append(clause.time.tree)
    if clause.content:
        found.append(("SBAR", ("IN", "that"), ("S", *_clause(clause.content))))
    return found


def _object(clause: Clause) -> list[Tree]:
    forms, target = clause.verb.english, clause.object
    word = forms.particle
    particle: list[Tree] = [PARTICLES.get(word, ("PRT", ("RP", word)))] if word else []
    if target is None or isinstance(target, Gap):
        return particle
    if forms.preposition:
        return [*particle, _prepositional(forms.preposition, target)]
    phrase = _noun_phrase(target)
    return [phrase, *particle] if isinstance(target, Pronoun) else [*particle, phrase]


def _quality(clause: Clause) -> Tree:
    assert clause.quality is not None
    if clause.than is None:
        return "ADJP", ("JJ", clause.quality.name)
    more, _, word = clause.quality.comparative.rpartition(" ")
    compared: list[Tree] = [("RBR", more), ("JJ", word)] if more else [("JJR", word)]
    return "ADJP", *compared, _prepositional("than", clause.than)


def _adverb(adverb: Adverb) -> Tree:
    return "ADVP", ("RB", adverb.english)


def _prepositional(preposition: str, phrase: NounPhrase) -> Tree:
    return "PP", ("TO" if preposition == "to" else "IN", preposition), _noun_phrase(phrase)


def _noun_phrase(phrase: NounPhrase, subject: bool = False) -> Tree:
    if isinstance(phrase, Pronoun):
        return "NP", ("PRP", phrase.key if subject else OBJECT_FORMS[phrase.key])
    if isinstance(phrase, Name):
        return "NP", ("NNP", phrase.text)
    if isinstance(phrase, Both):
        return "NP", _noun_phrase(phrase.left), ("CC", "and"), _noun_phrase(phrase.right)
    assert isinstance(phrase, Phrase)
    tree = _core(phrase)
    if phrase.garment:
        tree = ("NP", tree, _prepositional("with", phrase.garment))
    if phrase.relative:
        tree = ("NP", tree, _relative(phrase, phrase.relative))
    return tree


def _core(phrase: Phrase) -> Tree:
    noun = phrase.noun
    words = [("JJ", adjective.name) for adjective in phrase.adjectives]
    words.append(("NNS", noun.english_plural) if phrase.plural else ("NN", noun.name))
    if phrase.owner:
        return "NP", _owner(phrase.owner), *words
    return "NP", *_determiner(phrase, words[0][1]), *words


def _owner(owner: Phrase | Name) -> Tree:
    mark = "'" if is_plural(owner) and leaves(_noun_phrase(owner))[-1].endswith("s") else "'s"
    return *_noun_phrase(owner), ("POS", mark)


def _determiner(phrase: Phrase, following: str) -> list[Tree]:
    key = phrase.determiner
    if not key:
        return []
    word = {"this": "these"}.get(key, key) if phrase.plural else key
    if key == "a" and following[0].lower() in "aeiou":
        word = "an"
    return [(DETERMINER_TAGS.get(key, "DT"), word)]


def _relative(antecedent: Phrase, clause: Clause) -> Tree:
    if isinstance(clause.subject, Gap) and antecedent.noun.person:
        return "SBAR", ("WHNP", ("WP", "who")), ("S", *_clause(clause))
    return "SBAR", ("WHNP", ("WDT", "that")), ("S", *_clause(clause))
