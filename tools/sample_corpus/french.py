"""French: agreement, adjectives before and after the noun, clitics, participles, elision, contraction."""

from __future__ import annotations

from tools.sample_corpus.alignment import Word, merged, time_words, word
from tools.sample_corpus.function_words import NUMERALS
from tools.sample_corpus.lexicon import ASPIRATED
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
from tools.sample_corpus.words import FrenchVerb

VOWELS = frozenset("aeiouyhâàéèêëîïôœû")
ELIDED = frozenset({"le", "la", "je", "ne", "que", "de", "se", "me"})
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}

SUBJECTS = {"I": "je", "he": "il", "she": "elle", "we": "nous", "they": "ils"}
DIRECT = {"I": "me", "he": "le", "she": "la", "we": "nous", "they": "les"}
INDIRECT = {"I": "me", "he": "lui", "she": "lui", "we": "nous", "they": "leur"}
STRESSED = {"I": "moi", "he": "lui", "she": "elle", "we": "nous", "they": "eux"}
REFLEXIVE = {"I": "me", "we": "nous"}
# (masculine, feminine, plural)
DETERMINERS = {
    "the": ("le", "la", "les"),
    "a": ("un", "une", "des"),
    "this": ("ce", "cette", "ces"),
    "every": ("chaque", "chaque", "chaque"),
    "some": ("quelques", "quelques", "quelques"),
    "my": ("mon", "ma", "mes"),
    "our": ("notre", "notre", "nos"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "their": ("leur", "leur", "leurs"),
}
BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}
NUMBERS = dict(zip(NUMERALS, ("deux", "trois", "quatre", "cinq"), strict=True))
# Endings in the order je, il, nous, ils.
IMPERFECT = ("ais", "ait", "ions", "aient")
FUTURE = ("ai", "a", "ons", "ont")
SUBJUNCTIVE = ("e", "e", "ions", "ent")
SUBJUNCTIVES = {
    "être": ("sois", "soit", "soyons", "soient"),
    "avoir": ("aie", "ait", "ayons", "aient"),
    "aller": ("aille", "aille", "allions", "aillent"),
    "faire": ("fasse", "fasse", "fassions", "fassent"),
    "pouvoir": ("puisse", "puisse", "puissions", "puissent"),
    "vouloir": ("veuille", "veuille", "voulions", "veuillent"),
    "savoir": ("sache", "sache", "sachions", "sachent"),
}
HAVE = FrenchVerb("avoir", "ai", "a", "avons", "ont", "eu", "aur")
BE = FrenchVerb("être", "suis", "est", "sommes", "sont", "été", "ser")
MODALS = {
    "can": FrenchVerb("pouvoir", "peux", "peut", "pouvons", "peuvent", "pu", "pourr"),
    "must": FrenchVerb("devoir", "dois", "doit", "devons", "doivent", "dû", "devr"),
    "want": FrenchVerb("vouloir", "veux", "veut", "voulons", "veulent", "voulu", "voudr"),
    "should": FrenchVerb("devoir", "dois", "doit", "devons", "doivent", "dû", "devr"),
}
COMMA = word(",")
QUESTION_WORDS = {
    "who": ("qui",),
    "what": ("qu'est-ce", "que"),
    "where": ("où",),
    "why": ("pourquoi",),
    "when": ("quand",),
    "whether": (),
}


def sentence(meaning: Sentence) -> str:
    """Returns the French sentence, with capital and final punctuation ("?" after a space)."""
    mark = "." if meaning.kind == "statement" else ""
    written = " ".join(words(meaning)).replace("' ", "'").replace(" ,", ",")
    return written[0].upper() + written[1:] + mark


def words(meaning: Sentence) -> list[Word]:
    """Returns the words of a sentence after elision, its commas, and its question mark."""
    words = _joined(_sentence(meaning))
    if meaning.kind != "statement":
        words.append(word("?", meaning.clause, "?"))
    return words


def starts_with_vowel(word: str) -> bool:
    """Returns whether a word causes elision: it begins with a vowel or a mute h."""
    return word[0].lower() in VOWELS and word not in ASPIRATED


def _joined(words: list[Word]) -> list[Word]:
    """Elides and contracts: le arbre -> l' arbre, si il -> s' il, de le pain -> du pain."""
    joined: list[Word] = []
    for index, item in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ","
        elided = item in ELIDED and starts_with_vowel(following)
        if elided or (item == "si" and following in ("il", "ils")):
            item = merged(f"{item[:-1]}'", item)
        contracted = CONTRACTED.get((joined[-1], item)) if joined else None
        if contracted:
            joined[-1] = merged(contracted, joined[-1], item)
            continue
        joined.append(item)
    return joined


def noun_phrase(phrase: NounPhrase, denied: bool = False) -> list[Word]:
    """Returns the words of a noun phrase before elision; `denied` objects of negated verbs have "de"."""
    if isinstance(phrase, Gap):
        return []
    if isinstance(phrase, Pronoun):
        return [word(STRESSED[phrase.key], phrase, "head")]
    if isinstance(phrase, Name):
        return [word(phrase.text, phrase, "head")]
    if isinstance(phrase, Both):
        return [*noun_phrase(phrase.left), word("et", phrase, "and"), *noun_phrase(phrase.right)]
    core = _core(phrase)
    words = [word(text, phrase, "determiner") for text in _determiner(phrase, core, denied)] + core
    if phrase.owner:
        words += [word("de", phrase.owner, "of"), *noun_phrase(phrase.owner)]
    if phrase.garment:
        words += [word("à", phrase, "with"), *noun_phrase(phrase.garment)]
    if phrase.relative:
        pronoun = "qui" if isinstance(phrase.relative.subject, Gap) else "que"
        words += [word(pronoun, phrase.relative, "relative"), *_clause(phrase.relative)]
    return words


def _core(phrase: Phrase) -> list[Word]:
    """Returns the noun with its adjectives."""
    noun = phrase.noun
    words = [word(noun.french_plural if phrase.plural else noun.french, phrase, "head")]
    form = (noun.french_gender == "f") + 2 * phrase.plural
    for adjective in reversed(phrase.adjectives):
        vowel = adjective.french_before and form == 0 and starts_with_vowel(words[0])
        described = word(adjective.french[4 if vowel else form], phrase, adjective.name)
        words.insert(0 if adjective.french_before else len(words), described)
    return words


def _determiner(phrase: Phrase, core: list[Word], denied: bool) -> list[str]:
    key, noun = phrase.determiner, phrase.noun
    column = 2 if phrase.plural else int(noun.french_gender == "f")
    if key in NUMBERS:
        return [NUMBERS[key]]
    if key == "many":
        return ["beaucoup", "de"]
    if denied and key in ("a", "") and not phrase.owner:
        return ["de"]
    if not key and not phrase.plural:
        return ["de", DETERMINERS["the"][column]]
    if not key:
        return ["de"] if phrase.adjectives and phrase.adjectives[0].french_before else ["des"]
    text = DETERMINERS[key][column]
    return [BEFORE_VOWEL.get(text, text) if starts_with_vowel(core[0]) else text]


def _gender(phrase: NounPhrase) -> str:
    if isinstance(phrase, Phrase):
        return phrase.noun.french_gender
    if isinstance(phrase, Name):
        return phrase.gender
    if isinstance(phrase, Pronoun):
        return "f" if phrase.key == "she" else "m"
    if isinstance(phrase, Both):
        return "f" if _gender(phrase.left) == _gender(phrase.right) == "f" else "m"
    return phrase.antecedent.noun.french_gender if phrase.antecedent else "m"


def _sentence(meaning: Sentence) -> list[Word]:
    link, linked = meaning.link, meaning.linked
    if meaning.kind != "statement":
        return _question(meaning.kind, meaning.clause)
    if link is None or linked is None:
        return _clause(meaning.clause)
    second = [word(text, linked, "link") for text in link.french.split()] + _clause(linked, link.mood)
    if meaning.link_first:
        return [*second, COMMA, *_clause(meaning.clause)]
    comma = [COMMA] if link.english == "but" else []
    return [*_clause(meaning.clause), *comma, *second]


def _question(kind: str, clause: Clause) -> list[Word]:
    words = [word(text, clause, "question") for text in QUESTION_WORDS[kind]]
    if kind not in ("who", "what"):
        words += [word(text, clause, "inversion") for text in ("est-ce", "que")]
    return [*words, *_clause(clause)]


def _clause(clause: Clause, mood: str = "indicative") -> list[Word]:
    front = [*_time(clause), COMMA] if clause.time_first else []
    subject = clause.subject
    words = noun_phrase(subject)
    if isinstance(subject, Pronoun):
        words = [word(SUBJECTS[subject.key], subject, "head")]
    return [*front, *words, *_verb_group(clause, mood), *_complements(clause)]


def _time(clause: Clause) -> list[Word]:
    return time_words(clause.time.french, clause.time.french_numbers, clause) if clause.time else []


def _verb_group(clause: Clause, mood: str) -> list[Word]:
    """Returns the words from "ne" to the last verb: ne l'a pas vue, ne veut pas la voir, la voit souvent."""
    forms = clause.verb.french
    clitics = _clitics(clause)
    slot, ne = _denial(clause)
    roles = ("verb",) if forms.preposition else ("verb", "particle")
    tail = [word(text, clause, "verb") for text in forms.tail.split()] if forms.tail else []
    if clause.modal:
        verb = MODALS[clause.modal]
        conditional = verb.future + IMPERFECT[_person(clause)]
        modal = conditional if clause.modal == "should" else _finite(clause, verb, mood)
        infinitive = word(forms.infinitive, clause, *roles)
        return [*ne, word(modal, clause, "tense", "modal"), *slot, *clitics, infinitive, *tail]
    if clause.tense == "past" and "state" not in clause.verb.notes:
        perfect = word(_form(clause, BE if forms.be else HAVE, mood), clause, "tense")
        return [*ne, *clitics, perfect, *slot, word(_participle(clause), clause, *roles), *tail]
    return [*ne, *clitics, word(_finite(clause, forms, mood), clause, "tense", *roles), *slot, *tail]


def _denial(clause: Clause) -> tuple[list[Word], list[Word]]:
    """Returns what follows the finite verb, "pas" or an adverb, and the "ne" that goes before it."""
    if clause.negated:
        return [word("pas", clause, "not")], [word("ne", clause, "not")]
    adverb = clause.frequency
    if adverb is None:
        return [], []
    ne = [word("ne", clause, adverb.english)] if adverb.negative else []
    return [word(adverb.french, clause, adverb.english)], ne


def _clitics(clause: Clause) -> list[Word]:
    forms, target = clause.verb.french, clause.object
    if forms.reflexive:
        key = clause.subject.key if isinstance(clause.subject, Pronoun) else ""
        return [word(REFLEXIVE.get(key, "se"), clause, "verb")]
    if isinstance(clause.recipient, Pronoun):
        return [word(INDIRECT[clause.recipient.key], clause.recipient, "head")]
    if isinstance(target, Pronoun) and not _stressed(clause):
        return [word((INDIRECT if forms.preposition else DIRECT)[target.key], target, "head")]
    return []


def _stressed(clause: Clause) -> bool:
    """Returns whether a pronoun object follows the verb: pense à lui, parle de lui; but: lui répond."""
    preposition = clause.verb.french.preposition
    return preposition == "de" or (preposition == "à" and bool(clause.verb.english.preposition))


def _participle(clause: Clause) -> str:
    """Returns the participle, which agrees with the subject of être or an earlier direct object of avoir."""
    forms = clause.verb.french
    participle = forms.participle
    source: NounPhrase | None = None
    if forms.be:
        source = clause.subject
    elif isinstance(clause.object, Gap | Pronoun) and not forms.preposition:
        source = clause.object
    if source is None:
        return participle
    feminine = "e" if _gender(source) == "f" else ""
    plural = "s" if is_plural(source) and not (participle.endswith("s") and not feminine) else ""
    return f"{participle}{feminine}{plural}"


def _person(clause: Clause) -> int:
    """Returns the column in a table of je, il, nous, ils."""
    return 2 * is_plural(clause.subject) + (not is_first_person(clause.subject))


def _finite(clause: Clause, verb: FrenchVerb, mood: str) -> str:
    person = _person(clause)
    if clause.tense == "future":
        return verb.future + FUTURE[person]
    if clause.tense == "past":
        stem = "ét" if verb.infinitive == "être" else verb.first_plural.removesuffix("ons")
        return stem + IMPERFECT[person]
    return _form(clause, verb, mood)


def _form(clause: Clause, verb: FrenchVerb, mood: str) -> str:
    """Returns the present form, indicative or subjunctive."""
    person = _person(clause)
    if mood == "indicative":
        return (verb.first, verb.third, verb.first_plural, verb.third_plural)[person]
    if verb.infinitive in SUBJUNCTIVES:
        return SUBJUNCTIVES[verb.infinitive][person]
    if person == 2:
        return verb.first_plural.removesuffix("ons").removesuffix("e") + SUBJUNCTIVE[person]
    return verb.third_plural.removesuffix("ent") + SUBJUNCTIVE[person]


def _complements(clause: Clause) -> list[Word]:
    """Returns manner, quality, object, recipient, modifier, time and that-clause."""
    manner = clause.manner
    words = [word(manner.french, clause, manner.english)] if manner else []
    words += _quality(clause)
    target, forms = clause.object, clause.verb.french
    if target is not None and (not isinstance(target, Pronoun) or _stressed(clause)):
        words += [word(forms.preposition, clause, "particle")] if forms.preposition else []
        words += noun_phrase(target, denied=clause.negated)
    if clause.recipient and not isinstance(clause.recipient, Pronoun):
        words += [word("à"), *noun_phrase(clause.recipient)]
    if clause.modifier:
        preposition, phrase = clause.modifier
        words += [word(text, clause, "place") for text in preposition.french.split()]
        words += noun_phrase(phrase)
    if not clause.time_first:
        words += _time(clause)
    if clause.content:
        words += [word("que", clause.content, "link"), *_clause(clause.content)]
    return words


def _quality(clause: Clause) -> list[Word]:
    if clause.quality is None:
        return []
    form = (_gender(clause.subject) == "f") + 2 * is_plural(clause.subject)
    adjective = word(clause.quality.french[form], clause, "quality")
    if clause.than is None:
        return [adjective]
    return [word("plus", clause, "more"), adjective, word("que", clause, "than"), *noun_phrase(clause.than)]
