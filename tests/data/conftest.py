"""A small vocabulary as T2T writes them."""

import pytest

SUBTOKENS = [
    "<pad>_",
    "<EOS>_",
    "the_",
    "dog",
    "do",
    "og_",
    "s_",
    ", _",
    "_",
    "\\u",
    "\\",
    ";_",
    "1",
    "ü",
    "é_",
]


@pytest.fixture(scope="session")
def subwords_file(tmp_path_factory):
    """Few subtokens, the longer ones made so that greedy choices matter; each character is one."""
    alphabet = {c for subtoken in SUBTOKENS for c in subtoken} | set("\\_u;0123456789 abc\u00a0日")
    subtokens = [*SUBTOKENS, *sorted(alphabet.difference(SUBTOKENS))]
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.translate_ende_toy.64.subwords"
    path.write_text("".join(f"'{subtoken}'\n" for subtoken in subtokens), encoding="utf-8")
    return path
