"""Patterns of markup: tags, placeholders, addresses, escapes and entities within a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import unescape
from itertools import zip_longest
from typing import NamedTuple

from t2t_revival.decoding.options import NUMBERS, PLACEHOLDERS

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

QUOTED = r"""(?:
    \\+"(?:[^"\\]|\\(?!\\*["']))*\\+" | \\+'(?:[^'\\]|\\(?!\\*["']))*\\+'   # in files of strings
    | "[^"]*" | '[^']*' | \{(?:[^{}]|\{[^{}]*\})*\}
)"""
STARTS, ENDS = ("bpt", "bx", "sc"), ("ept", "ex", "ec")  # of XLIFF and TMX
NUMBERS_OF_TAG = [
    re.compile(rf"""\s(?:{names})\s*=\s*\\*["']?([^\s"'\\/]+)""") for names in ("rid|startRef", "id|i")
]
SECTIONS = ("{", "[")  # how names of tags of templates begin
SLASH = r"(?:\\*/)"
BRACKETS = {  # around tags, as characters, entities and escapes
    "": ("<", ">"),
    "entities": (r"&(?:amp;)*(?:lt|\#0*60|\#[xX]0*3[cC]);", r"&(?:amp;)*(?:gt|\#0*62|\#[xX]0*3[eE]);"),
    "escapes": (r"\\+(?:u00|x)3[cC]", r"\\+(?:u00|x)3[eE]"),
}


def _tags(style: str) -> str:
    left, right = BRACKETS[style]
    inner = f"(?: (?!{left}|{right})[^<>] )"
    return rf"""
    {left}(?P<slash{style}>{SLASH}?) (?: (?P<number{style}>\d+)\s* | (?P<name{style}>[^\W\d][\w:.-]*)
        (?: (?:\s (?: {QUOTED} | (?!["'{{\\]){inner} | (?!{right})\\(?!\\*["']) )*? )? | \s{inner}*? )
    ) (?P<empty{style}>{SLASH}?){right}
    """


TAGS = rf"""
    (?P<single> <!--.*?--> | <!\[CDATA\[.*?\]\]> | <\?.*?\?> | <![A-Za-z][^<>]*> | <%.*?%>
    | (?P<native> <(?P<code>bpt|ept|ph|it|ut)(?:\s[^<>]*)?(?<!/)> .*? </(?P=code)\s*> ) )   # XLIFF, TMX
    | <<\w[\w .-]*>> | (?P<fragment> <>(?=.*</>) | </> )
    | {" | ".join(map(_tags, BRACKETS))}
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
    %%[A-Za-z_][\w.]*%%
    | %\([^()\s]+\)[-+\#0\ ]*(?:\d+|\*)?(?:\.\d+)?[A-Za-z]        # %(name)s
    | (?<!\d)%[-+\#0\ ]*\d*<\w+>(?:[-+\#0\ ]*\d*(?:\.\d+)?[A-Za-z])?   # %<name>s
    | %\d+\$[-+\#0'\ ]*(?:\d+|\*)?(?:\.(?:\d+|\*))?{LENGTH}{PRINTF}   # %1$s
    | %\d+![^!\s]+! | %(?:\d+\$)?\#@\w+@                      # %1!s!, %#@files@
    | (?<!\d)%[A-Z][A-Z0-9_]+(?:%(?![\w(]))?                  # %PRODUCTNAME
    | (?<!\d)%[A-Za-z_]\w*%(?![\w%(])                         # %SystemRoot%
    | (?<!\d)%[a-z]{{3,}}                                     # %divide
    | (?<!\d)%[-+\#0']*(?:[1-9]\d*|\*)?(?:\.(?:\d+|\*))?{LENGTH}{PRINTF}   # %-5.2f
    | (?<!\d)%[-_^\#E]?[A-Za-z](?![A-Za-z])                   # %Y-%m-%d
    | (?<!\d)(?:%L?\d{{1,2}})+                                # %1%2
    | %%
"""
TEMPLATES = r"""
    \{%[-+~]?\s*(?P<stop>end_?|/)?(?P<block>\w+).*?%\} | \{%.*?%\} | \{\#.*?\#\}
    | \[\[(?:[^\[\]])*\]\] | \[%(?:\d+\$)?[\w.]+(?::\w+)?\]
    | \[(?P<begin>[A-Za-z]\w*)(?:[=\s][^\[\]]*)?\](?=.*\[/(?P=begin)\]) | \[/(?P<finish>[A-Za-z]\w*)\]
"""
BRACE = r"(?P<brace>[$%\#@]?\{)"
PLACEHOLDER = re.compile(  # between a brace and the one that belongs to it
    r"""
    [$%\#@]\{.* | \{\{.* | \{[^{}\s]*\}
    | \{\s*\w+\s*,\s*(?:plural|select|selectordinal|choice|number|date|time|duration|ordinal|spellout)\b.*
    | \{[\#/:@^&>!=*~].* | \{\s*["'$-].* | \{\w[\w.\[\]]*(?:![rsa])?:.*
    | \{[ ][\w.-]*[ ]\} | \{\w[\w-]*(?:[ ]\w[\w-]*){1,2}\}   # { year }, {user profile}
    """,
    re.VERBOSE | re.DOTALL,
)
SECTION = re.compile(r"(\{+)[~-]?([#^/]?)\s*(\w[\w.-]*)")
VARIABLES = r"""
    \$\$[A-Za-z_][\w.]*\$\$ | \$[A-Za-z_][\w.]*\$(?!\w) | \$t\((?:[^()]|\([^()]*\))*\)
    | \$[A-Za-z_]\w*(?:\.\w+|->\w+|\[[\w"'$-]*\])*\|? | \$\([^()\s]*\) | \$\[[^\[\]\s]*\]
    | @@\w+@@ | (?<!\w)@[A-Za-z_]\w*@ | @(?:\.\w+)?:(?:\([\w.]+\)|[A-Za-z_](?:[\w.]*\w)?)
    | \#\#\w+\#\# | \#[A-Z][A-Z0-9_]+\# | (?<!\w)__\w+?__(?!\w)
"""
ESCAPES = r"""
    \b[A-Za-z]:\\[^\s"'<>|*?]*
    | (?P<space>\\[nrtvf]) | \\(?:[abe0"'\\]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-7]{3})
"""
PATH = r"(?:/[\w.+~@%-]*\w)*"  # after a variable
AFTER_BRACE = re.compile(PATH)
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


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    """The pattern of all markup of a kind, which takes as long to compile as a command's flags to read."""
    parts = [ADDRESSES, TAGS, ENTITIES, TEMPLATES, BRACE, f"(?:{VARIABLES}){PATH}"]
    parts += [ESCAPES] * kind.startswith(PLACEHOLDERS) + [PERCENT] + [NUMBER] * kind.endswith(NUMBERS)
    return re.compile("|".join(parts), re.VERBOSE)


def find(text: str, kind: str) -> list[Span]:
    """Returns the markup of a line, one of `MARKUP`, in its order; no two overlap."""
    found = _together(text, _without_single_sections(_spans(text, _pattern(kind))))
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
    position, closing = 0, _closing_braces(text)
    while match := pattern.search(text, position):
        span = _braces(match, closing) if match["brace"] else _span(match)
        position = max(span.end, match.start() + 1)
        if span.end > span.start:
            yield span


def _closing_braces(text: str) -> dict[int, int]:
    """Returns the place behind the closing brace that belongs to each opening one."""
    found, begun = {}, []
    for match in re.finditer(r"[{}]", text):
        if match[0] == "{":
            begun.append(match.start())
        elif begun:
            found[begun.pop()] = match.end()
    return found


def _braces(match: re.Match[str], closing: Mapping[int, int]) -> Span:
    """Returns a placeholder in braces; an empty span if it is none."""
    text, start = match.string, match.start()
    end = closing.get(match.end() - 1, 0)
    if not end and text.startswith("{{", match.end() - 1):
        end = text.find("}}", start) + 2
    if end <= start or not PLACEHOLDER.fullmatch(text, start, end):
        return Span(start, start, ITEM)
    section = SECTION.match(text, start, end)
    if section and (section[2] or section[1] == "{"):  # {{name}} has no {{/name}}
        return Span(start, end, CLOSE if section[2] == "/" else OPEN, section[1] + section[3])
    following = AFTER_BRACE.match(text, end)
    return Span(start, following.end() if following else end, ITEM)


def _without_single_sections(spans: Iterable[Span]) -> list[Span]:
    """Makes items of those tags of templates that have no partner in the line."""
    found: list[Span] = []
    begun: dict[str, list[int]] = {}
    for number, span in enumerate(spans):
        is_section = span.name[:1] in SECTIONS and span.shape in (OPEN, CLOSE)
        found.append(span._replace(shape=ITEM) if is_section else span)
        if is_section and span.shape == OPEN:
            begun.setdefault(span.name, []).append(number)
        elif is_section and begun.get(span.name):
            first = begun[span.name].pop()
            found[first], found[number] = found[first]._replace(shape=OPEN), span
    return found


def _span(match: re.Match[str]) -> Span:
    start, end = match.span()
    groups = match.groupdict()
    for style in BRACKETS:
        if groups[f"name{style}"] or groups[f"number{style}"]:
            return _tag(match, style)
    if groups["native"]:
        return _numbered_tag(match, groups["code"])
    if groups["fragment"]:
        return Span(start, end, CLOSE if "/" in match[0] else OPEN, "<>")
    if groups["single"]:
        return Span(start, end, TAG)
    if name := groups["block"]:
        return Span(start, end, CLOSE if groups["stop"] else OPEN, f"{{%{name}")
    if name := groups["begin"] or groups["finish"]:
        return Span(start, end, OPEN if groups["begin"] else CLOSE, f"[{name}")
    if entity := groups["entity"]:
        text = unescape(entity)
        is_text = text != entity and all(one.isprintable() or one == "\xa0" for one in text)
        return Span(start, end, ENTITY, text) if is_text else Span(start, end, ITEM)
    if address := groups["address"]:
        return Span(start, start + len(_trimmed(address)), ITEM)
    return Span(start, end, ITEM, breaks=bool(groups.get("space")))


def _tag(match: re.Match[str], style: str) -> Span:
    name = (match[f"name{style}"] or match[f"number{style}"]).lower()
    if match[f"empty{style}"] and name in {*STARTS, *ENDS}:
        return _numbered_tag(match, name)
    breaks = name in BREAKS
    is_void = name in VOID and f"/{name}" not in match.string.lower()  # <Link>...</Link> of JSX is not
    if match[f"empty{style}"] or is_void:
        return Span(*match.span(), TAG, name, breaks)
    return Span(*match.span(), CLOSE if match[f"slash{style}"] else OPEN, f"{name} {style}".rstrip(), breaks)


def _numbered_tag(match: re.Match[str], name: str) -> Span:
    """Returns a tag of XLIFF or TMX that is one half of an element, by its number."""
    attributes = match[0].partition(">")[0]
    number = next(filter(None, (pattern.search(attributes) for pattern in NUMBERS_OF_TAG)), None)
    if name not in {*STARTS, *ENDS} or not number:
        return Span(*match.span(), TAG)
    return Span(*match.span(), OPEN if name in STARTS else CLOSE, f"</> {number[1]}")


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
