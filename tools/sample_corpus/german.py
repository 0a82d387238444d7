"""German: case, gender, number, weak, mixed and strong adjectives, verb second and last, separable verbs."""

from __future__ import annotations

from tools.sample_corpus.alignment import Word, merged, time_words, word
from tools.sample_corpus.function_words import NUMERALS, Adverb
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
from tools.sample_corpus.words import Adjective, Noun

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
COMMA = word(",")
QUESTION_WORDS = {"who": "wer", "what": "was", "where": "wo", "why": "warum", "when": "wann"}


def sentence(meaning: Sentence) -> str:
    """Returns the German sentence, with capital and final punctuation."""
    return _written(words(meaning), "." if meaning.kind == "statement" else "?")


def noun_phrase(phrase: NounPhrase, case: str, denied: bool = False) -> list[Word]:
    """Returns the words of a noun phrase in a case, "nom", "acc", "dat" or "gen"; with "kein" if `denied`."""
    if isinstance(phrase, Gap):
        return []
    if isinstance(phrase, Pronoun):
        return [word(PRONOUNS[phrase.key][case], phrase, "head")]
    if isinstance(phrase, Name):
        return [word(phrase.text, phrase, "head")]
    if isinstance(phrase, Both):
        return [*noun_phrase(phrase.left, case), word("und", phrase, "and"), *noun_phrase(phrase.right, case)]
    words = _core(phrase, case, denied)
    if isinstance(phrase.owner, Phrase):
        words += noun_phrase(phrase.owner, "gen")
    if phrase.garment and not denied:
        words += [word("mit", phrase, "with"), *noun_phrase(phrase.garment, "dat")]
    if phrase.relative:
        words += _relative(phrase, phrase.relative)
    return words


def _core(phrase: Phrase, case: str, denied: bool) -> list[Word]:
    gender = "p" if phrase.plural else phrase.noun.german_gender
    determiner, endings = _determiner(phrase, case, gender, denied)
    ending = endings[case][GENDERS.index(gender)]
    adjectives = [
        word(f"{adjective.german_stem}{ending}", phrase, adjective.name) for adjective in phrase.adjectives
    ]
    return [*determiner, *adjectives, word(noun_form(phrase.noun, case, phrase.plural), phrase, "head")]


def noun_form(noun: Noun, case: str, plural: bool) -> str:
    """Returns a noun in case and number."""
    if plural:
        needs_n = case == "dat" and not noun.german_plural.endswith(("n", "s"))
        return f"{noun.german_plural}n" if needs_n else noun.german_plural
    if case == "gen":
        return noun.german_genitive
    return noun.german if case == "nom" else noun.german_oblique


def _determiner(phrase: Phrase, case: str, gender: str, denied: bool) -> tuple[list[Word], Endings]:
    """Returns the determiner, and the table of the adjective endings after it."""
    if isinstance(phrase.owner, Name):
        return [word(f"{phrase.owner.text}s", phrase.owner, "head", "of")], STRONG
    text, endings = _determiner_text("no" if denied else phrase.determiner, case, gender)
    return ([word(text, phrase, "determiner")] if text else []), endings


def _determiner_text(key: str, case: str, gender: str) -> tuple[str, Endings]:
    column = GENDERS.index(gender)
    ending = DETERMINER_ENDINGS[case][column]
    if key == "the":
        return DER[case][column], WEAK
    if key in DER_WORDS:
        return f"{DER_WORDS[key]}{ending}", WEAK
    if key in EIN_WORDS:
        bare = (case, gender) in BARE_EIN
        return EIN_WORDS[key] + ("" if bare else ending), STRONG if bare else WEAK
    if key in QUANTITIES:
        return f"{QUANTITIES[key]}{ending}", STRONG
    return NUMBERS.get(key, ""), STRONG


def _relative(antecedent: Phrase, clause: Clause) -> list[Word]:
    case = "nom" if isinstance(clause.subject, Gap) else clause.verb.german.case
    gender = "p" if antecedent.plural else antecedent.noun.german_gender
    text = "denen" if (case, gender) == ("dat", "p") else DER[case][GENDERS.index(gender)]
    return [COMMA, word(text, clause, "relative"), *_clause(clause, "last"), COMMA]


def words(meaning: Sentence) -> list[Word]:
    """Returns the words of a sentence and its commas, some of which are not written."""
    link, linked = meaning.link, meaning.linked
    if meaning.kind == "whether":
        return _clause(meaning.clause, "first")
    if meaning.kind != "statement":
        return [
            word(QUESTION_WORDS[meaning.kind], meaning.clause, "question"),
            *_clause(meaning.clause, "first"),
        ]
    if link is None or linked is None:
        return _clause(meaning.clause, "second")
    if link.joins:
        comma = [] if link.english == "and" else [COMMA]
        conjunction = word(link.german, linked, "link")
        return [*_clause(meaning.clause, "second"), *comma, conjunction, *_clause(linked, "second")]
    conjunction = word(link.german_past if linked.tense == "past" else link.german, linked, "link")
    subordinate = [conjunction, *_clause(linked, "last"), COMMA]
    if meaning.link_first:
        return [*subordinate, *_clause(meaning.clause, "first")]
    return [*_clause(meaning.clause, "second"), COMMA, *subordinate]


def _clause(clause: Clause, verb: str) -> list[Word]:
    """Returns a clause with its finite verb "first", "second" or "last"."""
    subject = noun_phrase(clause.subject, "nom")
    finite, end = _verbs(clause)
    middle = _middle(clause, verb)
    after: list[Word] = []
    if clause.content:
        after = [COMMA, word("dass", clause.content, "link"), *_clause(clause.content, "last"), COMMA]
    if clause.than:
        after = [word("als", clause, "than"), *noun_phrase(clause.than, "nom")]
    if verb == "last":
        prefix_only = bool(end) and end[-1] == clause.verb.german.prefix
        last = [*end[:-1], merged(end[-1] + finite, end[-1], finite)] if prefix_only else [*end, finite]
        return [*subject, *middle, *last, *after]
    if verb == "first":
        return [finite, *subject, *middle, *end, *after]
    if clause.time and clause.time_first:
        return [*_time(clause), finite, *subject, *middle, *end, *after]
    return [*subject, finite, *middle, *end, *after]


def _verbs(clause: Clause) -> tuple[Word, list[Word]]:
    """Returns the finite verb, and the verbs and prefixes at the end of the clause."""
    forms = clause.verb.german
    plural, first = is_plural(clause.subject), is_first_person(clause.subject)
    roles = ("verb",) if forms.preposition else ("verb", "particle")
    if clause.tense == "future" or clause.modal:
        auxiliary = ("werde" if first else "wird", "werden")
        if clause.modal:
            auxiliary = MODALS[clause.modal, clause.tense]
        infinitive = word(forms.prefix + forms.infinitive, clause, *roles)
        return word(auxiliary[plural], clause, "tense", "modal"), [infinitive]
    text = forms.plural if plural else (forms.first if first else forms.third)
    if clause.tense == "past":
        text = forms.past_plural if plural else forms.past
    if forms.prefix:
        return word(text, clause, "tense", "verb"), [word(forms.prefix, clause, "particle")]
    return word(text, clause, "tense", *roles), []


def _time(clause: Clause) -> list[Word]:
    return time_words(clause.time.german, clause.time.german_numbers, clause) if clause.time else []


def _middle(clause: Clause, verb: str) -> list[Word]:
    """Returns pronouns, time, adverbs, recipient, manner, object, "nicht", prepositions and quality."""
    forms, target = clause.verb.german, clause.object
    early: list[Word] = []
    late: list[Word] = []
    direct: list[Word] = []
    recipient = noun_phrase(clause.recipient, "dat") if clause.recipient else []
    if isinstance(clause.recipient, Pronoun):
        early, recipient = recipient, []
    negative = clause.negated
    if target is not None and forms.preposition:
        late = _prepositional(word(forms.preposition, clause, "particle"), target, forms.case)
    elif isinstance(target, Pronoun):
        early = noun_phrase(target, forms.case)
    elif target is not None:
        takes_no = (
            negative and isinstance(target, Phrase) and target.determiner in ("a", "") and not target.owner
        )
        direct = _without(clause, target) if takes_no else noun_phrase(target, forms.case)
        negative = negative and not takes_no
    time = [] if clause.time_first and verb == "second" else _time(clause)
    frequency = [_adverb(clause.frequency, clause)] if clause.frequency else []
    manner = [_adverb(clause.manner, clause)] if clause.manner else []
    denial = [word("nicht", clause, "not")] if negative else []
    modifier: list[Word] = []
    if clause.modifier:
        preposition, phrase = clause.modifier
        modifier = _prepositional(word(preposition.german, clause, "place"), phrase, preposition.case)
    quality = _quality(clause, clause.quality) if clause.quality else []
    return [
        *early, *time, *frequency, *recipient, *manner, *direct, *denial, *modifier, *late, *quality
    ]  # fmt: skip


def _without(clause: Clause, phrase: NounPhrase) -> list[Word]:
    determiner, *words = noun_phrase(phrase, "acc", denied=True)
    return [merged(determiner, determiner, word("nicht", clause, "not")), *words]


def _adverb(adverb: Adverb, clause: Clause) -> Word:
    return word(adverb.german, clause, adverb.english)


def _quality(clause: Clause, quality: Adjective) -> list[Word]:
    if clause.than:
        return [word(quality.german_comparative, clause, "more", "quality")]
    return [word(quality.german, clause, "quality")]


def _prepositional(preposition: Word, phrase: NounPhrase, case: str) -> list[Word]:
    words = noun_phrase(phrase, case)
    fused = FUSED.get((preposition, words[0]))
    return [merged(fused, preposition, words[0]), *words[1:]] if fused else [preposition, *words]


def _written(words: list[Word], mark: str) -> str:
    written = ""
    for index, item in enumerate(words):
        if item != ",":
            written += f" {item}"
        elif index + 1 < len(words) and words[index + 1] != ",":
            written += ","
    written = written.lstrip()
    return written[0].upper() + written[1:] + mark
