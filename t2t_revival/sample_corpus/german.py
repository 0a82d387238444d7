"""German: case, gender, number, weak, mixed and strong adjectives, verb second and last, separable verbs."""

from __future__ import annotations

from t2t_revival.sample_corpus.function_words import NUMERALS
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
from t2t_revival.sample_corpus.words import Noun

# Endings by case, in the order masculine, feminine, neuter, plural.
GENDERS = "mfnp"
Endings = dict[str, tuple[str, str, str, str]]
DER = {
    "nom": ("der", "die", "das", "die"),
    "acc": ("den", "die", "das", "die"),
    "dat": ("dem", "der", "dem", "den"),
    "gen": ("des", "der", "des", "der"),
}
STRONG = {
    "nom": ("er", "e", "es", "e"),
    "acc": ("en", "e", "es", "e"),
    "dat": ("em", "er", "em", "en"),
    "gen": ("en", "er", "en", "er"),
}
WEAK = {
    "nom": ("e", "e", "e", "en"),
    "acc": ("en", "e", "e", "en"),
    "dat": ("en", "en", "en", "en"),
    "gen": ("en", "en", "en", "en"),
}
DETERMINER_ENDINGS = {**STRONG, "gen": ("es", "er", "es", "er")}
BARE_EIN = {("nom", "m"), ("nom", "n"), ("acc", "n")}  # where ein-words take no ending

DER_WORDS = {"this": "dies", "every": "jed"}
EIN_WORDS = {
    "a": "ein", "no": "kein", "my": "mein", "our": "unser", "his": "sein", "her": "ihr", "their": "ihr",
}  # fmt: skip
QUANTITIES = {"some": "einig", "many": "viel"}
NUMBERS = dict(zip(NUMERALS, ("zwei", "drei", "vier", "fünf"), strict=True))
PRONOUNS = {
    "I": {"nom": "ich", "acc": "mich", "dat": "mir"},
    "he": {"nom": "er", "acc": "ihn", "dat": "ihm"},
    "she": {"nom": "sie", "acc": "sie", "dat": "ihr"},
    "we": {"nom": "wir", "acc": "uns", "dat": "uns"},
    "they": {"nom": "sie", "acc": "sie", "dat": "ihnen"},
}
# (singular, plural) of the finite verb; first and third person are the same but for "werden".
MODALS = {
    ("can", "present"): ("kann", "können"),
    ("can", "past"): ("konnte", "konnten"),
    ("must", "present"): ("muss", "müssen"),
    ("must", "past"): ("musste", "mussten"),
    ("want", "present"): ("will", "wollen"),
    ("want", "past"): ("wollte", "wollten"),
    ("should", "present"): ("sollte", "sollten"),
}
FUSED = {
    ("in", "dem"): "im",
    ("bei", "dem"): "beim",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}
QUESTION_WORDS = {"who": "wer", "what": "was", "where": "wo", "why": "warum", "when": "wann"}


def sentence(meaning: Sentence) -> str:
    """Returns the German sentence, with capital and final punctuation."""
    return _written(_sentence(meaning), "." if meaning.kind == "statement" else "?")


def noun_phrase(phrase: NounPhrase, case: str) -> list[str]:
    """Returns the words of a noun phrase in a case: "nom", "acc", "dat" or "gen"."""
    if isinstance(phrase, Gap):
        return []
    if isinstance(phrase, Pronoun):
        return [PRONOUNS[phrase.key][case]]
    if isinstance(phrase, Name):
        return [phrase.text]
    if isinstance(phrase, Both):
        return [*noun_phrase(phrase.left, case), "und", *noun_phrase(phrase.right, case)]
    words = _core(phrase, case)
    if isinstance(phrase.owner, Phrase):
        words += noun_phrase(phrase.owner, "gen")
    if phrase.garment:
        words += ["mit", *noun_phrase(phrase.garment, "dat")]
    if phrase.relative:
        words += _relative(phrase, phrase.relative)
    return words


def _core(phrase: Phrase, case: str) -> list[str]:
    gender = "p" if phrase.plural else phrase.noun.german_gender
    determiner, endings = _determiner(phrase, case, gender)
    ending = endings[case][GENDERS.index(gender)]
    adjectives = [f"{adjective.german_stem}{ending}" for adjective in phrase.adjectives]
    return [*determiner, *adjectives, noun_form(phrase.noun, case, phrase.plural)]


def noun_form(noun: Noun, case: str, plural: bool) -> str:
    """Returns a noun in case and number."""
    if plural:
        needs_n = case == "dat" and not noun.german_plural.endswith(("n", "s"))
        return f"{noun.german_plural}n" if needs_n else noun.german_plural
    if case == "gen":
        return noun.german_genitive
    return noun.german if case == "nom" else noun.german_oblique


def _determiner(phrase: Phrase, case: str, gender: str) -> tuple[list[str], Endings]:
    """Returns the determiner, and the table of the adjective endings after it."""
    column = GENDERS.index(gender)
    ending = DETERMINER_ENDINGS[case][column]
    key = phrase.determiner
    if isinstance(phrase.owner, Name):
        return [f"{phrase.owner.text}s"], STRONG
    if key == "the":
        return [DER[case][column]], WEAK
    if key in DER_WORDS:
        return [f"{DER_WORDS[key]}{ending}"], WEAK
    if key in EIN_WORDS:
        bare = (case, gender) in BARE_EIN
        return [EIN_WORDS[key] + ("" if bare else ending)], STRONG if bare else WEAK
    if key in QUANTITIES:
        return [f"{QUANTITIES[key]}{ending}"], STRONG
    return ([NUMBERS[key]] if key in NUMBERS else []), STRONG


def _relative(antecedent: Phrase, clause: Clause) -> list[str]:
    case = "nom" if isinstance(clause.subject, Gap) else clause.verb.german.case
    gender = "p" if antecedent.plural else antecedent.noun.german_gender
    word = "denen" if (case, gender) == ("dat", "p") else DER[case][GENDERS.index(gender)]
    return [",", word, *_clause(clause, "last"), ","]


def _sentence(meaning: Sentence) -> list[str]:
    link, linked = meaning.link, meaning.linked
    if meaning.kind == "whether":
        return _clause(meaning.clause, "first")
    if meaning.kind != "statement":
        return [QUESTION_WORDS[meaning.kind], *_clause(meaning.clause, "first")]
    if link is None or linked is None:
        return _clause(meaning.clause, "second")
    if link.joins:
        comma = [] if link.english == "and" else [","]
        return [*_clause(meaning.clause, "second"), *comma, link.german, *_clause(linked, "second")]
    conjunction = link.german_past if linked.tense == "past" else link.german
    subordinate = [conjunction, *_clause(linked, "last"), ","]
    if meaning.link_first:
        return [*subordinate, *_clause(meaning.clause, "first")]
    return [*_clause(meaning.clause, "second"), ",", *subordinate]


def _clause(clause: Clause, verb: str) -> list[str]:
    """Returns a clause with its finite verb "first", "second" or "last"."""
    subject = noun_phrase(clause.subject, "nom")
    finite, end = _verbs(clause)
    middle = _middle(clause, verb)
    after = [",", "dass", *_clause(clause.content, "last"), ","] if clause.content else []
    if clause.than:
        after = ["als", *noun_phrase(clause.than, "nom")]
    if verb == "last":
        prefix_only = bool(end) and end[-1] == clause.verb.german.prefix
        last = [*end[:-1], end[-1] + finite] if prefix_only else [*end, finite]
        return [*subject, *middle, *last, *after]
    if verb == "first":
        return [finite, *subject, *middle, *end, *after]
    if clause.time and clause.time_first:
        return [clause.time.german, finite, *subject, *middle, *end, *after]
    return [*subject, finite, *middle, *end, *after]


def _verbs(clause: Clause) -> tuple[str, list[str]]:
    """Returns the finite verb, and the verbs and prefixes at the end of the clause."""
    forms = clause.verb.german
    plural, first = is_plural(clause.subject), is_first_person(clause.subject)
    infinitive = [forms.prefix + forms.infinitive]
    if clause.tense == "future":
        return "werden" if plural else ("werde" if first else "wird"), infinitive
    if clause.modal:
        return MODALS[clause.modal, clause.tense][plural], infinitive
    prefix = [forms.prefix] if forms.prefix else []
    if clause.tense == "past":
        return forms.past_plural if plural else forms.past, prefix
    return forms.plural if plural else (forms.first if first else forms.third), prefix


def _middle(clause: Clause, verb: str) -> list[str]:
    """Returns pronouns, time, adverbs, recipient, manner, object, "nicht", prepositions and quality."""
    forms, target = clause.verb.german, clause.object
    early: list[str] = []
    late: list[str] = []
    direct: list[str] = []
    recipient = noun_phrase(clause.recipient, "dat") if clause.recipient else []
    if isinstance(clause.recipient, Pronoun):
        early, recipient = recipient, []
    negative = clause.negated
    if target is not None and forms.preposition:
        late = _prepositional(forms.preposition, target, forms.case)
    elif isinstance(target, Pronoun):
        early = noun_phrase(target, forms.case)
    elif target is not None:
        takes_no = (
            negative and isinstance(target, Phrase) and target.determiner in ("a", "") and not target.owner
        )
        direct = _without(target) if takes_no else noun_phrase(target, forms.case)
        negative = negative and not takes_no
    time = [clause.time.german] if clause.time and not (clause.time_first and verb == "second") else []
    frequency = [clause.frequency.german] if clause.frequency else []
    manner = [clause.manner.german] if clause.manner else []
    denial = ["nicht"] if negative else []
    modifier: list[str] = []
    if clause.modifier:
        preposition, phrase = clause.modifier
        modifier = _prepositional(preposition.german, phrase, preposition.case)
    quality: list[str] = []
    if clause.quality:
        quality = [clause.quality.german_comparative if clause.than else clause.quality.german]
    return [
        *early, *time, *frequency, *recipient, *manner, *direct, *denial, *modifier, *late, *quality
    ]  # fmt: skip


def _without(phrase: NounPhrase) -> list[str]:
    assert isinstance(phrase, Phrase)
    return noun_phrase(
        Phrase(phrase.noun, "no", phrase.plural, phrase.adjectives, relative=phrase.relative), "acc"
    )


def _prepositional(preposition: str, phrase: NounPhrase, case: str) -> list[str]:
    words = noun_phrase(phrase, case)
    fused = FUSED.get((preposition, words[0]))
    return [fused, *words[1:]] if fused else [preposition, *words]


def _written(words: list[str], mark: str) -> str:
    written = ""
    for index, word in enumerate(words):
        if word != ",":
            written += f" {word}"
        elif index + 1 < len(words) and words[index + 1] != ",":
            written += ","
    written = written.lstrip()
    return written[0].upper() + written[1:] + mark
