"""French: agreement, adjectives before and after the noun, clitics, participles, elision, contraction."""

from __future__ import annotations

from t2t_revival.sample_corpus.function_words import NUMERALS
from t2t_revival.sample_corpus.lexicon import ASPIRATED
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
from t2t_revival.sample_corpus.words import FrenchVerb

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
QUESTION_WORDS = {
    "what": ("qu'est-ce", "que"),
    "where": ("où", "est-ce", "que"),
    "why": ("pourquoi", "est-ce", "que"),
    "when": ("quand", "est-ce", "que"),
    "whether": ("est-ce", "que"),
}


def sentence(meaning: Sentence) -> str:
    """Returns the French sentence, with capital and final punctuation ("?" after a space)."""
    mark = "." if meaning.kind == "statement" else " ?"
    written = " ".join(_joined(_sentence(meaning))).replace("' ", "'").replace(" ,", ",")
    return written[0].upper() + written[1:] + mark


def starts_with_vowel(word: str) -> bool:
    """Returns whether a word causes elision: it begins with a vowel or a mute h."""
    return word[0].lower() in VOWELS and word not in ASPIRATED


def _joined(words: list[str]) -> list[str]:
    """Elides and contracts: le arbre -> l' arbre, si il -> s' il, de le pain -> du pain."""
    joined: list[str] = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ","
        elided = word in ELIDED and starts_with_vowel(following)
        if elided or (word == "si" and following in ("il", "ils")):
            word = f"{word[:-1]}'"
        if joined and (joined[-1], word) in CONTRACTED:
            joined[-1] = CONTRACTED[joined[-1], word]
            continue
        joined.append(word)
    return joined


def noun_phrase(phrase: NounPhrase, denied: bool = False) -> list[str]:
    """Returns the words of a noun phrase before elision; `denied` objects of negated verbs have "de"."""
    if isinstance(phrase, Gap):
        return []
    if isinstance(phrase, Pronoun):
        return [STRESSED[phrase.key]]
    if isinstance(phrase, Name):
        return [phrase.text]
    if isinstance(phrase, Both):
        return [*noun_phrase(phrase.left), "et", *noun_phrase(phrase.right)]
    core = _core(phrase)
    words = [*_determiner(phrase, core, denied), *core]
    if phrase.owner:
        words += ["de", *noun_phrase(phrase.owner)]
    if phrase.garment:
        words += ["à", *noun_phrase(phrase.garment)]
    if phrase.relative:
        pronoun = "qui" if isinstance(phrase.relative.subject, Gap) else "que"
        words += [pronoun, *_clause(phrase.relative)]
    return words


def _core(phrase: Phrase) -> list[str]:
    """Returns the noun with its adjectives."""
    noun = phrase.noun
    words = [noun.french_plural if phrase.plural else noun.french]
    form = (noun.french_gender == "f") + 2 * phrase.plural
    for adjective in reversed(phrase.adjectives):
        if not adjective.french_before:
            words.append(adjective.french[form])
        elif form == 0 and starts_with_vowel(words[0]):
            words.insert(0, adjective.french[4])
        else:
            words.insert(0, adjective.french[form])
    return words


def _determiner(phrase: Phrase, core: list[str], denied: bool) -> list[str]:
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
    word = DETERMINERS[key][column]
    return [BEFORE_VOWEL.get(word, word) if starts_with_vowel(core[0]) else word]


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


def _sentence(meaning: Sentence) -> list[str]:
    link, linked = meaning.link, meaning.linked
    if meaning.kind == "who":
        return ["qui", *_clause(meaning.clause)]
    if meaning.kind != "statement":
        return [*QUESTION_WORDS[meaning.kind], *_clause(meaning.clause)]
    if link is None or linked is None:
        return _clause(meaning.clause)
    second = [*link.french.split(), *_clause(linked, link.mood)]
    if meaning.link_first:
        return [*second, ",", *_clause(meaning.clause)]
    comma = [","] if link.english == "but" else []
    return [*_clause(meaning.clause), *comma, *second]


def _clause(clause: Clause, mood: str = "indicative") -> list[str]:
    front = [clause.time.french, ","] if clause.time and clause.time_first else []
    subject = clause.subject
    words = [SUBJECTS[subject.key]] if isinstance(subject, Pronoun) else noun_phrase(subject)
    return [*front, *words, *_verb_group(clause, mood), *_complements(clause)]


def _verb_group(clause: Clause, mood: str) -> list[str]:
    """Returns the words from "ne" to the last verb: ne l'a pas vue, ne veut pas la voir, la voit souvent."""
    forms = clause.verb.french
    clitics = _clitics(clause)
    negative = clause.negated or bool(clause.frequency and clause.frequency.negative)
    ne = ["ne"] if negative else []
    adverb = [clause.frequency.french] if clause.frequency else []
    slot = ["pas"] if clause.negated else adverb
    tail = [forms.tail] if forms.tail else []
    if clause.modal:
        verb = MODALS[clause.modal]
        conditional = verb.future + IMPERFECT[_person(clause)]
        modal = conditional if clause.modal == "should" else _finite(clause, verb, mood)
        return [*ne, modal, *slot, *clitics, forms.infinitive, *tail]
    if clause.tense == "past" and "state" not in clause.verb.notes:
        auxiliary = BE if forms.be else HAVE
        perfect = _form(clause, auxiliary, mood)
        return [*ne, *clitics, perfect, *slot, _participle(clause), *tail]
    return [*ne, *clitics, _finite(clause, forms, mood), *slot, *tail]


def _clitics(clause: Clause) -> list[str]:
    forms, target = clause.verb.french, clause.object
    if forms.reflexive:
        key = clause.subject.key if isinstance(clause.subject, Pronoun) else ""
        return [REFLEXIVE.get(key, "se")]
    if isinstance(clause.recipient, Pronoun):
        return [INDIRECT[clause.recipient.key]]
    if isinstance(target, Pronoun) and not _stressed(clause):
        return [(INDIRECT if forms.preposition else DIRECT)[target.key]]
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


def _complements(clause: Clause) -> list[str]:
    """Returns manner, quality, object, recipient, modifier, time and that-clause."""
    words = [clause.manner.french] if clause.manner else []
    words += _quality(clause)
    target, forms = clause.object, clause.verb.french
    if target is not None and (not isinstance(target, Pronoun) or _stressed(clause)):
        words += [forms.preposition] if forms.preposition else []
        words += noun_phrase(target, denied=clause.negated)
    if clause.recipient and not isinstance(clause.recipient, Pronoun):
        words += ["à", *noun_phrase(clause.recipient)]
    if clause.modifier:
        preposition, phrase = clause.modifier
        words += [*preposition.french.split(), *noun_phrase(phrase)]
    if clause.time and not clause.time_first:
        words.append(clause.time.french)
    if clause.content:
        words += ["que", *_clause(clause.content)]
    return words


def _quality(clause: Clause) -> list[str]:
    if clause.quality is None:
        return []
    form = (_gender(clause.subject) == "f") + 2 * is_plural(clause.subject)
    adjective = clause.quality.french[form]
    if clause.than is None:
        return [adjective]
    return ["plus", adjective, "que", *noun_phrase(clause.than)]
