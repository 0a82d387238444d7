"""Outputs that the page shows word by word: their details, and what could stand in the place of a word."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.addons.attention.attention import check_length
from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.data.vocabulary.spans import UNSPACED, split_words, words_at_tokens
from t2t_revival.decoding.alignment_heads import all_heads
from t2t_revival.decoding.lines.detailer import Hypothesis
from t2t_revival.decoding.lines.preprocessor import pad
from t2t_revival.errors import T2TError
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from t2t_revival.decoding.details import Details
    from t2t_revival.decoding.lines.detailer import Detailer
    from t2t_revival.decoding.translator import Translator

MAX_TOKENS = 256  # of a source or an output
OTHER_WORDS = 5  # that could stand where one does
BEAM_SIZE, CANDIDATES, MAX_WORD_TOKENS = 8, 10, 12  # of the search for them: beginnings, next tokens of each
SPACES = " \t"  # between words
REPLACEMENT = "\ufffd"  # text of a byte that is no character alone


@dataclass(frozen=True)
class OtherWord:
    """A word that could have stood in the place of another.

    Attributes:
        text: the word.
        prefix: the output before it, and it.
        probability: of its tokens, and that it ends after them.
    """

    text: str
    prefix: str
    probability: float


def explain(
    translator: Translator, line: str, output: str | None = None, prefix: str = ""
) -> tuple[Hypothesis, Details]:
    """Returns an output as its tokens write it, and its details; the tag of the line counts as a word.

    Words are aligned by the alignment heads, or else by all heads of the last layer. In scripts without
    spaces, each token is a word.

    Args:
        translator: the model, its vocabularies and its decoding options.
        line: the source.
        output: the output, as `Translator.translate` returns it. `None` decodes the best one.
        prefix: beginning of the output to be decoded; see `Translator.nbest`.

    Raises:
        T2TError: source or output is empty or has more than `MAX_TOKENS` tokens; the output is no tree of a
            parser; or as `AlignmentHeads.check`; or the model's weights contain NaN.
    """
    detailer = _detailer(translator)
    if is_blank(line):
        raise T2TError("the source is empty: give a sentence")
    source = translator.encode(line)
    check_length("source", source, min(MAX_TOKENS, translator.max_length))
    if output is None:
        output = translator.nbest([line], n=1, prefixes=[prefix] if prefix else None)[0][0].text
    problem, vocabularies = translator.problem, translator.vocabularies
    target = translator.encode(problem.encode_target(output) if problem else output, is_output=True)
    check_length("output", target, MAX_TOKENS)
    text, written = vocabularies.inputs.decode(source[:-1]), vocabularies.targets.decode(target[:-1])
    if not (text.strip() and written.strip()):
        raise T2TError("the source or the output is empty: there is nothing to explain")
    hypothesis = Hypothesis(text, "", source, written, target)
    (details,) = detailer([hypothesis])
    if not all(math.isfinite(token.log_prob) for token in details.tokens):
        raise T2TError("the model's weights contain NaN: use an earlier checkpoint")
    return hypothesis, details


def _detailer(translator: Translator) -> Detailer:
    """Returns what computes details and the most probable next tokens, so that one graph does both."""
    heads = translator.term_heads or all_heads(translator.model.hparams)
    heads.check(translator.model.hparams)
    count = min(CANDIDATES, translator.vocabularies.targets.size)
    return replace(translator.detailer, heads=heads, alternatives=count, divide=words_at_tokens)


class _Beginning(NamedTuple):
    """An output up to a place in its next word, and the sum of log-probabilities of that word's tokens."""

    ids: list[int]
    text: str
    log_prob: float


def other_words(
    translator: Translator, hypothesis: Hypothesis, details: Details, number: int
) -> list[OtherWord]:
    """Returns the most probable words in the place of one, best first; a beam search finds them.

    Args:
        translator: as for `explain`.
        hypothesis: an output.
        details: of it.
        number: of the word.

    Raises:
        T2TError: the output has no word of this number.
    """
    if not 0 <= number < len(details.words):
        raise T2TError(f"word must be between 0 and {len(details.words) - 1}: {number}")
    places = (place for place, token in enumerate(details.tokens) if token.word >= number)
    before = hypothesis.ids[: next(places, len(details.tokens) - 1)]
    detailer, vocabulary = _detailer(translator), translator.vocabularies.targets
    known = vocabulary.decode(before).rstrip(SPACES)
    probabilities: dict[str, float] = defaultdict(float)  # of outputs up to the end of a word
    alive, best = [_Beginning(before, known, 0.0)], list[OtherWord]()
    for _ in range(MAX_WORD_TOKENS):
        grown = []
        for beginning, token, log_prob in _with_next_tokens(detailer, hypothesis.source_ids, alive):
            if token == EOS and beginning.text != known:
                probabilities[beginning.text] += math.exp(log_prob)
            if token in (PAD, EOS, vocabulary.unknown):
                continue
            ids = [*beginning.ids, token]
            if (longer := _up_to_next_word(known, vocabulary.decode(ids))) is None:
                continue
            text, is_whole = longer
            if is_whole:
                probabilities[text] += math.exp(log_prob)
            else:
                grown.append(_Beginning(ids, text, log_prob))
        alive = sorted(grown, key=lambda beginning: -beginning.log_prob)[:BEAM_SIZE]
        best = _best(known, probabilities, details.words[number].text)
        if not alive or (len(best) == OTHER_WORDS and best[-1].probability >= math.exp(alive[0].log_prob)):
            break
    return best


def _best(known: str, probabilities: Mapping[str, float], word: str) -> list[OtherWord]:
    others = [
        OtherWord(text[len(known) :].strip(SPACES), text.lstrip(SPACES), probability)
        for text, probability in probabilities.items()
    ]
    others = [other for other in others if other.text != word]
    return sorted(others, key=lambda other: -other.probability)[:OTHER_WORDS]


def _with_next_tokens(
    detailer: Detailer, source: list[int], alive: list[_Beginning]
) -> list[tuple[_Beginning, int, float]]:
    """Returns the most probable next tokens of beginnings of equal lengths, and the sums with theirs."""
    targets = pad([[*beginning.ids, EOS] for beginning in alive])
    sources = pad([source] * len(alive))
    annotated = detailer.annotate(sources, targets, detailer.alternatives, detailer.heads)
    columns = zip(alive, annotated.alternatives[:, -1], annotated.alternative_log_probs[:, -1], strict=True)
    return [
        (beginning, token, beginning.log_prob + log_prob)
        for beginning, tokens, log_probs in columns
        for token, log_prob in zip(tokens.tolist(), log_probs.tolist(), strict=True)
    ]


def _up_to_next_word(known: str, text: str) -> tuple[str, bool] | None:
    """Returns a text up to the end of the word after what is known of it, and whether the word is whole.

    Before the word's first whole character, the text is what is known. `None` is for what belongs to the word
    before.
    """
    rest = text[len(known) :]
    word = rest.lstrip(SPACES)
    if not text.startswith(known):
        return None
    if not word or REPLACEMENT in word:
        return known, False
    is_joined = bool(known) and len(word) == len(rest)
    if UNSPACED.match(word) or (is_joined and UNSPACED.match(known[-1])):
        return text.rstrip(SPACES), True
    if is_joined:
        return None
    end = len(text) - len(word) + split_words(word)[0].end
    return text[:end], end < len(text)
