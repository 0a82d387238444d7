"""Patterns of markup: tags, placeholders, addresses, escapes and entities within a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import zip_longest
from typing import NamedTuple

NUMBERS = "+numbers"
HTML, PLACEHOLDERS = "html", "placeholders"
KINDS = tuple(kind + numbers for kind in (HTML, PLACEHOLDERS) for numbers in ("", NUMBERS))
OPEN, CLOSE, TAG, ITEM, ENTITY = "open", "close", "tag", "item", "entity"  # shapes; a `TAG` stands alone
VOID = set(re.findall(r"\w+", "area base br col embed hr img input link meta param source track wbr"))
BREAKS = set(  # elements that separate words
    re.findall(
        r"\w+",
        "address article aside blockquote br caption dd div dl dt figcaption figure footer form h1 h2 h3 h4 "
        "h5 h6 header hr legend li main nav ol option p para pre section table td textarea tfoot th thead "
        "title tr ul",
    )
)
ENCLOSURES = frozenset(("''", '""', "``", "`'", "()", "[]", "‘’", "“”", "„“", "‚‘", "«»", "‹›"))  # noqa: RUF001

ATTRIBUTE = r"""\s+[^\s"'<>/=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?"""
TAGS = rf"""
    (?P<tag> <!--.*?--> | <!\[CDATA\[.*?\]\]> | <\?.*?\?> | <![A-Za-z][^<>]*>
    | <(?P<slash>/?)(?P<name>[A-Za-z][\w:.-]*)(?:{ATTRIBUTE})*\s*(?P<empty>/?)> )
"""
ENTITIES = r"(?P<entity> &(?:[A-Za-z][A-Za-z0-9]{1,31}|\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}); )"
IN_ADDRESS = r"""(?: (?!&(?:quot|apos|lt|gt|nbsp|\#39|\#34);) [^\s<>"\\|`´‘’“”„«»] )"""  # noqa: RUF001
ADDRESSES = rf"""
    <(?:URL:|mailto:)?[A-Za-z][A-Za-z0-9+.-]*://[^\s<>]*> | <(?:mailto:)?[\w.+-]+@[\w-]+(?:\.[\w-]+)+>
    | (?P<address> \b(?:[A-Za-z][A-Za-z0-9+.-]*://|www\.(?=\w)|mailto:(?=\w)) {IN_ADDRESS}* )
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+
"""
LENGTH = r"(?:hh?|ll?|[Lqjzt]|I64|I32)?"
PRINTF = r"[diouxXeEfFgGaAcCsSpn@]"
PERCENT = rf"""
    %\([\w.]+\)[-+\#0\ ]*(?:\d+|\*)?(?:\.\d+)?[A-Za-z]        # %(name)s
    | %\d+\$[-+\#0'\ ]*(?:\d+|\*)?(?:\.(?:\d+|\*))?{LENGTH}{PRINTF}   # %1$s
    | (?<!\d)%[A-Z][A-Z0-9_]+(?:%(?![\w(]))?                  # %PRODUCTNAME
    | (?<!\d)%[A-Za-z_]\w{{2,}}%(?!\w)                        # %SystemRoot%
    | (?<!\d)%[a-z]{{3,}}                                     # %divide
    | (?<!\d)%[-+\#0']*(?:[1-9]\d*|\*)?(?:\.(?:\d+|\*))?{LENGTH}{PRINTF}   # %-5.2f
    | (?<!\d)%[-_^\#E]?[A-Za-z](?![A-Za-z])                   # %Y-%m-%d
    | (?<!\d)(?:%L?\d{{1,2}})+                                # %1%2
    | %%
"""
BRACES = r"""
    \{\s*\w+\s*,\s*(?:plural|select|selectordinal|number|date|time)\b (?:[^{}]|\{[^{}]*\}){0,400} \}
    | \{\{[^{}]{0,80}\}\} | [$%#]?\{[^{}\s]*\}
    | \{[ ][-$]?[\w.-]*[ ]\} | \{\w[\w-]*(?:[ ]\w[\w-]*){1,2}\}   # { $year }, {user profile}
    | \$\([^()\s]*\) | \$\[[^\[\]\s]*\]
"""
DOLLARS = r"\$[A-Za-z_][\w.]*\$(?!\w) | \$[A-Za-z_]\w*(?:\.\w+)*\|? | (?<!\w)@[A-Za-z_]\w*@"
ESCAPES = r"""
    \b[A-Za-z]:\\[^\s"'<>|*?]*
    | (?P<space>\\[nrtvf]) | \\(?:[abe0"'\\]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-7]{3})
"""
PATH = r"(?:/[\w.+~@%-]*\w)*"  # after a variable
NUMBER = r"(?<!\w)[-+]?\d+(?:[.,:/]\d+)*%?(?!\w)"
TRAILING = ".,;:!?'*"
JOINT = re.compile(r"[-/:.,_+@=~]{0,2}")  # between items that stay together, as in %d/%d


class Span(NamedTuple):
    """A piece of markup in a line.

    Attributes:
        start, end: offsets of its characters.
        shape: `OPEN`, `CLOSE`, `TAG` or `ITEM`; or `ENTITY`, which is text.
        name: of an element, in lower case; or the text of an entity.
        breaks: whether it separates words even without white space.
    """

    start: int
    end: int
    shape: str
    name: str = ""
    breaks: bool = False


def _compile(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.VERBOSE)


_COMMON = (ADDRESSES, TAGS, ENTITIES, f"(?:{BRACES} | {DOLLARS}){PATH}")
_PATTERNS = {
    HTML: _compile(*_COMMON, PERCENT),
    PLACEHOLDERS: _compile(*_COMMON, ESCAPES, PERCENT),
    HTML + NUMBERS: _compile(*_COMMON, PERCENT, NUMBER),
    PLACEHOLDERS + NUMBERS: _compile(*_COMMON, ESCAPES, PERCENT, NUMBER),
}


def find(text: str, kind: str) -> list[Span]:
    """Returns the markup of a line, one of `KINDS`, in its order; no two overlap."""
    found = _together(text, _spans(text, _PATTERNS[kind]))
    spans: list[Span] = []
    for span, following in zip_longest(found, found[1:]):
        least, most = spans[-1].end if spans else 0, following.start if following else len(text)
        spans.append(_enclosed(text, span, least, most))
    return spans


def _together(text: str, spans: Iterable[Span]) -> list[Span]:
    """Makes one span of items with at most a few signs between."""
    merged: list[Span] = []
    for span in spans:
        last = merged[-1] if merged else None
        items = last is not None and last.shape == span.shape == ITEM and not (last.breaks or span.breaks)
        if last and items and JOINT.fullmatch(text, last.end, span.start):
            merged[-1] = last._replace(end=span.end)
        else:
            merged.append(span)
    return merged


def _spans(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    position = 0
    while match := pattern.search(text, position):
        span = _span(match)
        position = max(span.end, match.start() + 1)
        if span.end > span.start:
            yield span


def _span(match: re.Match[str]) -> Span:
    start, end = match.span()
    groups = match.groupdict()
    if groups["tag"]:
        return _tag(match)
    if entity := groups["entity"]:
        text = unescape(entity)
        is_text = text != entity and all(one.isprintable() or one == "\xa0" for one in text)
        return Span(start, end, ENTITY, text) if is_text else Span(start, end, ITEM)
    if address := groups["address"]:
        return Span(start, start + len(_trimmed(address)), ITEM)
    return Span(start, end, ITEM, breaks=bool(groups.get("space")))


def _tag(match: re.Match[str]) -> Span:
    name = (match["name"] or "").lower()
    breaks = name in BREAKS
    if not name or match["empty"] or name in VOID:
        return Span(*match.span(), TAG, name, breaks)
    return Span(*match.span(), CLOSE if match["slash"] else OPEN, name, breaks)


def _trimmed(address: str) -> str:
    """Returns an address without the punctuation of the sentence around it."""
    while True:
        shorter = address.rstrip(TRAILING) if not address.endswith("://") else address
        for left, right in ("()", "[]", "{}"):
            if shorter.endswith(right) and shorter.count(left) < shorter.count(right):
                shorter = shorter[:-1]
        if shorter == address:
            return address
        address = shorter


def _enclosed(text: str, span: Span, least: int, most: int) -> Span:
    """Returns an item with the quotation marks or brackets that are around it and nothing else."""
    start, end = span.start - 1, span.end
    if span.shape != ITEM or start < least or end >= most or text[start] + text[end] not in ENCLOSURES:
        return span
    return Span(start, end + 1, ITEM)
