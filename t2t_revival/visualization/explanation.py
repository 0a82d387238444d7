"""Words of an output: how likely each is, what else stood to choose, and the source words it attends to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_softmax

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.data.vocabulary.spans import Span, token_spans, words_of_tokens
from t2t_revival.errors import T2TError
from t2t_revival.utils.blank import is_blank
from t2t_revival.visualization.attention import check_has_attention, row

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.decoding.translator import Translator

MAX_TOKENS = 256  # of a source or an output
ALTERNATIVES, CANDIDATES = 5, 10  # the most probable tokens, of which those that are text are kept
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
    """A token that could have stood where a word begins.

    Attributes:
        text: its text.
        prefix: the output before it, and it.
        probability: its probability there.
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
        alternatives: those of the most probable tokens, where its first token stands, that are text.
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


def explain(translator: Translator, line: str, output: str | None = None, prefix: str = "") -> Explanation:
    """Explains an output by one pass of the model, teacher-forced.

    Args:
        translator: the model, its vocabularies and its decoding options.
        line: the source.
        output: the output, as `Translator.translate` returns it. `None` decodes the best one.
        prefix: beginning of the output to be decoded; see `Translator.nbest`.

    Raises:
        T2TError: source or output is empty or has more than `MAX_TOKENS` tokens; the output is no tree of a
            parser; the decoder has no self-attention; or the model's weights contain NaN.
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
    members = [[n for n, word in enumerate(tokens) if word == place] for place in range(len(words))]
    by_word = np.zeros((len(target), len(source_words)))
    for place, word in enumerate(source_tokens):
        by_word[:, word] += attention[:, place]
    found = [
        Word(
            span,
            float(log_probs[at, [target[n] for n in at]].sum()),
            _alternatives(vocabularies.targets, target[: at[0]], log_probs[at[0]]),
            by_word[at].mean(0).tolist(),
        )
        for span, at in zip(words, members, strict=True)
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


def _alternatives(vocabulary: TextEncoder, before: list[int], log_probs: np.ndarray) -> list[Alternative]:
    found = []
    for token in np.argsort(-log_probs, kind="stable")[:CANDIDATES].tolist():
        text = vocabulary.decode([token]).strip()
        if text and REPLACEMENT not in text and token not in (PAD, EOS, vocabulary.unknown):
            found.append(
                Alternative(text, vocabulary.decode([*before, token]), float(np.exp(log_probs[token])))
            )
    return found[:ALTERNATIVES]


def _check_length(side: str, ids: list[int], limit: int) -> None:
    if len(ids) > limit:
        raise T2TError(f"the {side} has {len(ids)} tokens, the limit is {limit}: give a shorter sentence")
