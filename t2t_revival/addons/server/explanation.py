"""Words of an output: how likely each is, what else stood to choose, and the source words it attends to."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_softmax

from t2t_revival.addons.attention.attention import check_has_attention, row
from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.data.word_alignment import Span, token_spans, words_of_tokens
from t2t_revival.errors import T2TError
from t2t_revival.utils.blank import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.decoding.translator import Translator

MAX_TOKENS = 256  # of a source or an output
ALTERNATIVES = 5  # other words that could stand where one does
BEAM_SIZE, CANDIDATES, MAX_WORD_TOKENS = 8, 10, 12  # of the search for them: beginnings, next tokens of each
REPLACEMENT = "\ufffd"  # text of a byte that is no character alone
# Words, as in Unicode's annex 29: letters with their marks, and apostrophes between letters.
LETTER_KIND, APOSTROPHE_KIND, OTHER_KIND, SPACE_KIND = "w'. "
WORD = re.compile(r"w+(?:'w+)*|[.']+")
APOSTROPHES = "'\u2019"
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Chinese. Their pieces count as words.
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)


class Alternative(NamedTuple):
    """A word that could have stood where another does.

    Attributes:
        text: the word.
        prefix: the output before it, and it.
        probability: of its tokens, and that it ends after them.
    """

    text: str
    prefix: str
    probability: float


@dataclass(frozen=True)
class Word:
    """A word of an output.

    Attributes:
        span: its place in the output.
        log_prob: sum of the log-probabilities of its tokens.
        alternatives: other words that could have stood there, best first, if they were asked for.
        attention: weight of each source word, mean of its tokens, of all layers and all heads; the weights
            sum to at most 1, since the end of the source has the rest.
    """

    span: Span
    log_prob: float
    alternatives: list[Alternative]
    attention: list[float]


@dataclass(frozen=True)
class Explanation:
    """Words of a source and of an output.

    Attributes:
        source: the source as the model reads it.
        source_words: its words.
        output: the output.
        words: its words.
    """

    source: str
    source_words: list[Span]
    output: str
    words: list[Word]


def explain(
    translator: Translator,
    line: str,
    output: str | None = None,
    prefix: str = "",
    number: int | None = None,
) -> Explanation:
    """Explains an output by one pass of the model, teacher-forced.

    Args:
        translator: the model, its vocabularies and its decoding options.
        line: the source.
        output: the output, as `Translator.translate` returns it. `None` decodes the best one.
        prefix: beginning of the output to be decoded; see `Translator.nbest`.
        number: the word of the output whose alternatives are searched, by a pass for each of their tokens.

    Raises:
        T2TError: source or output is empty or has more than `MAX_TOKENS` tokens; the output is no tree of a
            parser, or has no word of this number; the decoder has no self-attention; or the model's weights
            contain NaN.
    """
    check_has_attention(translator)
    if is_blank(line):
        raise T2TError("the source is empty: give a sentence")
    source = translator.encode(line)
    _check_length("source", source, min(MAX_TOKENS, translator.max_length))
    if output is None:
        output = translator.nbest([line], n=1, prefixes=[prefix] if prefix else None)[0][0].text
    problem, vocabularies = translator.problem, translator.vocabularies
    target = translator.encode(problem.encode_target(output) if problem else output, is_output=True)
    _check_length("output", target, MAX_TOKENS)
    log_probs, attention = _pass(translator, source, target)
    source_text, source_tokens, source_words = _words(vocabularies.inputs, source[:-1])
    text, tokens, words = _words(vocabularies.targets, target[:-1])
    if number is not None and not 0 <= number < len(words):
        raise T2TError(f"word must be between 0 and {len(words) - 1}: {number}")
    members = [[n for n, word in enumerate(tokens) if word == place] for place in range(len(words))]
    by_word = np.zeros((len(target), len(source_words)))
    for place, word in enumerate(source_tokens):
        by_word[:, word] += attention[:, place]
    found = [
        Word(
            span,
            float(log_probs[at, [target[n] for n in at]].sum()),
            _alternatives(translator, source, target[: at[0]], text[slice(*span)]) if place == number else [],
            by_word[at].mean(0).tolist(),
        )
        for place, (span, at) in enumerate(zip(words, members, strict=True))
    ]
    return Explanation(source_text, source_words, text, found)


def _pass(translator: Translator, source: list[int], target: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns log-probabilities, [target, vocabulary], and the mean cross-attention, [target, source]."""
    model, source_ids, target_ids = translator.model, row(source), row(target)
    encoded = model.encode(source_ids)
    hidden, weights = model.decode(target_ids, source_ids, encoded, return_attention_scores=True)
    logits = np.asarray(model.softmax_embedding(hidden, reverse=True), np.float32)[0]
    attention = np.asarray(weights[-1], np.float32)[0]  # [layers, heads, target, source]
    if not np.isfinite(logits).all():
        raise T2TError("the model's weights contain NaN: use an earlier checkpoint")
    return log_softmax(logits, axis=-1), attention.mean((0, 1))


def _words(vocabulary: TextEncoder, ids: Sequence[int]) -> tuple[str, list[int], list[Span]]:
    """Returns the text of ids, the number of the word that each id is part of, and the words.

    Words that one id stands for are one; see `words_of_tokens`.
    """
    tokens = token_spans(vocabulary, ids)
    text = tokens.text
    if not text.strip():
        raise T2TError("the source or the output is empty: there is nothing to explain")
    if UNSPACED.search(text):
        words = [_stripped(text, *piece) for piece in tokens.spans if text[slice(*piece)].strip()]
    else:
        words = [Span(*match.span()) for match in WORD.finditer("".join(map(_kind, text)))]
    found = words_of_tokens(tokens, words)
    named = sorted(set(found))
    firsts = [0, *(number + 1 for number in named[:-1])]
    merged = [Span(words[first].start, words[last].end) for first, last in zip(firsts, named, strict=True)]
    return text, [named.index(number) for number in found], merged


def _stripped(text: str, start: int, end: int) -> Span:
    """Returns the span without the whitespace at its ends."""
    inside = text[start:end]
    return Span(end - len(inside.lstrip()), start + len(inside.rstrip()))


def _kind(character: str) -> str:
    """Returns a letter that stands for the kind of a character, as `WORD` knows them."""
    if character.isspace():
        return SPACE_KIND
    if character in APOSTROPHES:
        return APOSTROPHE_KIND
    is_letter = character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
    return LETTER_KIND if is_letter else OTHER_KIND


class _Beginning(NamedTuple):
    """Tokens that begin a word, and the text with it.

    Attributes:
        tokens: of the word.
        log_prob: sum of their log-probabilities.
        word: its text; empty before its first whole character.
        prefix: the output up to its end.
        is_followed: whether more text comes after it.
    """

    tokens: list[int]
    log_prob: float
    word: str
    prefix: str
    is_followed: bool


def _alternatives(
    translator: Translator, source: list[int], before: list[int], own: str
) -> list[Alternative]:
    """Returns the most probable words after some tokens, except one; a beam search finds them."""
    vocabulary = translator.vocabularies.targets
    encoded = np.asarray(translator.model.encode(row(source)))
    found: dict[str, Alternative] = {}
    alive = [_Beginning([], 0.0, "", "", False)]

    def add(one: _Beginning, log_prob: float) -> None:
        known = found.get(one.word, Alternative(one.word, one.prefix.lstrip(), 0.0))
        found[one.word] = known._replace(probability=known.probability + math.exp(log_prob))

    for _ in range(MAX_WORD_TOKENS):
        rows = _next_log_probs(translator, source, encoded, [[*before, *one.tokens] for one in alive])
        grown: list[_Beginning] = []
        for one, log_probs in zip(alive, rows, strict=True):
            longer, end = _longer(vocabulary, before, one, log_probs)
            grown += [other for other in longer if not other.is_followed]
            for whole in (other for other in longer if other.is_followed):
                add(whole, whole.log_prob)
            if one.word and end:
                add(one, one.log_prob + math.log(end))
        alive = sorted(grown, key=lambda one: -one.log_prob)[:BEAM_SIZE]
        best = sorted((other for other in found.values() if other.text != own), key=lambda o: -o.probability)
        most = math.exp(alive[0].log_prob) if alive else 0
        if not alive or (len(best) >= ALTERNATIVES and best[ALTERNATIVES - 1].probability >= most):
            break
    return best[:ALTERNATIVES]


def _longer(
    vocabulary: TextEncoder, before: list[int], one: _Beginning, log_probs: np.ndarray
) -> tuple[list[_Beginning], float]:
    """Returns the beginnings with one token more, and the probability that the word ends before the token."""
    longer, end = [], 0.0
    for token in np.argsort(-log_probs, kind="stable")[:CANDIDATES].tolist():
        log_prob = float(log_probs[token])
        if token == EOS:
            end += math.exp(log_prob)
        if token in (PAD, EOS, vocabulary.unknown):
            continue
        tokens = [*one.tokens, token]
        next_word = _next_word(vocabulary.decode(before).rstrip(), vocabulary.decode([*before, *tokens]))
        if next_word and next_word[0] == one.word and next_word[2]:
            end += math.exp(log_prob)
        elif next_word:
            longer.append(_Beginning(tokens, one.log_prob + log_prob, *next_word))
    return longer, end


def _next_word(before: str, text: str) -> tuple[str, str, bool] | None:
    """Returns the next word of a text, the text up to its end, and whether more follows.

    The word is empty before its first whole character. `None` is for text that belongs to the word before.
    """
    rest = text[len(before) :]
    if not text.startswith(before):
        return None
    if not rest.strip() or REPLACEMENT in rest:
        return "", text, False
    if UNSPACED.search(text):
        return rest.strip(), text.rstrip(), True
    words = WORD.finditer("".join(map(_kind, text)))
    start, end = next(match.span() for match in words if match.end() > len(before))
    if start < len(before):
        return None
    return text[start:end], text[:end], text[end:] not in ("", *APOSTROPHES)


def _next_log_probs(
    translator: Translator, source: list[int], encoded: np.ndarray, beginnings: list[list[int]]
) -> np.ndarray:
    """Returns log-probabilities after beginnings of equal lengths, [beginnings, vocabulary]."""
    model, count = translator.model, len(beginnings)
    targets = np.array([[*tokens, EOS] for tokens in beginnings], np.int32)
    hidden = model.decode(targets, row(source).repeat(count, 0), encoded.repeat(count, 0))
    logits = model.softmax_embedding(hidden[:, -1:], reverse=True)
    return log_softmax(np.asarray(logits, np.float32)[:, 0], axis=-1)


def _check_length(side: str, ids: list[int], limit: int) -> None:
    if len(ids) > limit:
        raise T2TError(f"the {side} has {len(ids)} tokens, the limit is {limit}: give a shorter sentence")
