"""Penn Treebank bracketing, as the treebank's own files and EVALB's have it."""

import gzip
from pathlib import Path

import pytest
from nltk.tree import Tree

from t2t_revival import T2TError
from t2t_revival.parsing.trees import MAX_DEPTH, bracketing, cleaned, escaped, parse, read_trees

SLEEPS = "(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))"
RAN = "(S (NP (PRP He)) (VP (VBD ran)))"
PRETTY = """
( (S
    (NP-SBJ (DT The)
      (NN dog) )
    (VP (VBZ sleeps) )
    (. .) ))

( (S
    (NP-SBJ (PRP He) )
    (VP (VBD ran) )))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "wsj.mrg"


def read(path: Path, content: str | bytes) -> list[str]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [bracketing(tree) for tree in read_trees(path)]


def error_of(path: Path, content: str | bytes) -> str:
    """Returns the error of a file that cannot be read, without the path at its beginning."""
    with pytest.raises(T2TError) as raised:
        read(path, content)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


@pytest.mark.parametrize(
    "content",
    [
        f"{SLEEPS}\n{RAN}",
        f"\n  \n{SLEEPS}\n\n\t{RAN}  \n\n",
        f"{SLEEPS} {RAN}\n",
        f"{SLEEPS}{RAN}",
        f"{SLEEPS}\r\n{RAN}\r\n",
        f"\ufeff{SLEEPS}\n{RAN}\n",
        PRETTY,
        PRETTY.replace("\n", "\r\n"),
        PRETTY.replace("  ", ""),
        PRETTY.replace("  ", "\t"),
        PRETTY.replace("(", "( "),
        PRETTY.replace(")\n\n(", ")  ("),
    ],
)
def test_every_layout_of_a_file_gives_the_same_trees(path: Path, content: str) -> None:
    assert read(path, content) == [SLEEPS, RAN]


def test_a_compressed_file_is_read_as_its_text(tmp_path: Path) -> None:
    path = tmp_path / "wsj.mrg.gz"
    halves = gzip.compress(f"\ufeff{SLEEPS}\r\n".encode()) + gzip.compress(RAN.encode())
    assert read(path, halves) == [SLEEPS, RAN]


def test_trees_are_nltks_and_their_bracketings_one_line() -> None:
    tree = parse(RAN)
    assert tree == Tree("S", [Tree("NP", [Tree("PRP", ["He"])]), Tree("VP", [Tree("VBD", ["ran"])])])
    text = f"(S {' '.join(['(NN word)'] * 100)})"
    assert bracketing(parse(text)) == text


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        # traces and what is empty without them
        ("(S (NP (-NONE- *)) (VP (VB Go)))", "(S (VP (VB Go)))"),
        (
            "(S (NP (NNS sales)) (SBAR (WHNP-1 (-NONE- 0)) (S (NP-SBJ (-NONE- *T*-1)) (VP (VBD fell)))))",
            "(S (NP (NNS sales)) (SBAR (S (VP (VBD fell)))))",
        ),
        ("(S (SBAR (-NONE- 0) (S (-NONE- *T*-2))) (VP (VB Go)))", "(S (VP (VB Go)))"),
        # function tags and indices of constituents; tags of words stay
        ("(S (NP-SBJ-1 (PRP He)) (VP (VBD ran)))", RAN),
        ("(S (NP=2 (PRP He)) (VP=1 (VBD ran)))", RAN),
        ("(S-TPC-1 (NP-SBJ=3 (PRP He)) (VP-3=1 (VBD ran)))", RAN),
        ("(S (ADVP|PRT-CLR (RP up)))", "(S (ADVP|PRT (RP up)))"),
        ("(NP (NN-X dog) (JJ=2 old))", "(NP (NN-X dog) (JJ=2 old))"),
        ("(PRN (-LRB- -LRB-) (NP (NN x)) (-RRB- -RRB-))", "(PRN (-LRB- -LRB-) (NP (NN x)) (-RRB- -RRB-))"),
        ("(NP (-LRB- -LCB-) (PRP$ my) ($ $) (# #))", "(NP (-LRB- -LCB-) (PRP$ my) ($ $) (# #))"),
        # wrappers around a sentence
        (f"( {RAN} )", RAN),
        (f"(TOP {RAN})", RAN),
        (f"(ROOT {RAN})", RAN),
        (f"(S1 {RAN})", RAN),
        (f"(ROOT (TOP ( {RAN})))", RAN),
        (f"( ( {RAN}))", RAN),
        (f"( {SLEEPS} {RAN})", f"(TOP {SLEEPS} {RAN})"),
        (f"(ROOT {SLEEPS} {RAN})", f"(TOP {SLEEPS} {RAN})"),
        (f"(ROOT ( {SLEEPS} (. .)))", f"(TOP {SLEEPS} (. .))"),
        (f"( {RAN} (NP (-NONE- *)))", RAN),
        # brackets without a label inside a sentence
        ("(S ( (NP (PRP He))) (VP (VBD ran)))", RAN),
        ("( ( (S (NP (PRP He)) ( (VP (VBD ran))))))", RAN),
        ("(S (NP (DT a) ( (JJ b) ( (-NONE- *)) (NN c))))", "(S (NP (DT a) (JJ b) (NN c)))"),
        ("( ( (-NONE- *)) (NP (NN a)) ( (. .)))", "(TOP (NP (NN a)) (. .))"),
        # a single word
        ("(NN Introduction)", "(TOP (NN Introduction))"),
        ("( (NN Introduction))", "(TOP (NN Introduction))"),
        ("(ROOT (NN Introduction))", "(TOP (NN Introduction))"),
        ("(ROOT (NP (NN Introduction)))", "(NP (NN Introduction))"),
        ("(S (NN Introduction))", "(S (NN Introduction))"),
        # unary chains stay
        ("(S (VP (VP (VB Go))))", "(S (VP (VP (VB Go))))"),
    ],
)
def test_cleaning(path: Path, raw: str, clean: str) -> None:
    assert read(path, raw) == [clean]
    again = cleaned(parse(clean))
    assert again is not None
    assert bracketing(again) == clean


def test_cleaning_leaves_the_given_tree_alone() -> None:
    raw = "(ROOT (S-1 (NP-SBJ (-NONE- *)) (VP (VB Go))))"
    tree = parse(raw)
    clean = cleaned(tree)
    assert clean is not None
    clean[0][0][0] = "Stay"
    assert bracketing(tree) == raw


@pytest.mark.parametrize("empty", ["( (S (NP-SBJ (-NONE- *)) (VP (-NONE- *?*))))", "(-NONE- *)"])
def test_a_tree_without_words_is_left_out(path: Path, empty: str) -> None:
    assert cleaned(parse(empty)) is None
    assert read(path, f"{SLEEPS}\n{empty}\n{RAN}\n") == [SLEEPS, RAN]


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ("(NP (NN New York))", "New_York"),
        ("(NP (CD 1  1\t1/2))", "1_1_1/2"),
        ("(NP (NN 10\u00a0000))", "10_000"),
        ("(NP (NN a\u2028b\u3000c))", "a_b_c"),
        ("(NP (-LRB- -LRB-))", "-LRB-"),
        ("(NP (-LRB- [))", "["),
        ("(NP (SYM \\))", "\\"),
        ("(NP (NN -NONE-))", "-NONE-"),
        ("(NP (NN Bäume))", "Bäume"),
        ("(NP (NN \u200bx\ufeff))", "\u200bx\ufeff"),
    ],
)
def test_words(path: Path, raw: str, word: str) -> None:
    path.write_text(raw, encoding="utf-8")
    assert [tree.leaves() for tree in read_trees(path)] == [[word]]
    assert word.split() == [word]


NO_BRACKETINGS = [
    (f"{RAN}\n{RAN})\n{RAN}\n", ", line 2: unbalanced brackets: a ) without its ("),
    (f"{RAN}\n{RAN[:-1]}\n{RAN}\n{RAN}\n", ", line 2: unbalanced brackets: this tree is not closed"),
    (f"{PRETTY}{PRETTY[:-2]}{PRETTY}", ", line 18: unbalanced brackets: this tree is not closed"),
    (f"{RAN}\nHe ran\n", ", line 2: 'He ran' is outside the brackets of a tree"),
    (f"{RAN}\n{RAN} x\n", ", line 2: 'x' is outside the brackets of a tree"),
    ("x" * 99, f", line 1: '{'x' * 40}' is outside the brackets of a tree"),
    (f"{RAN}\n(S\n  (NP (DT the) dog))", ", line 2: a word without a tag in '(NP (DT the) dog)'"),
    (f"{RAN}\n(S (NP) (VP (VB Go)))", ", line 2: a constituent without words: (NP)"),
    (f"{RAN}\n(())", ", line 2: a constituent without words: ()"),
    (f"{RAN}\n\r\n".encode() + b"(NP (NN \xe4))", ": line 3 is not UTF-8 text: convert the file to UTF-8"),
    (RAN.encode("utf-16"), ": line 1 is not UTF-8 text: convert the file to UTF-8"),
]


@pytest.mark.parametrize(("content", "message"), NO_BRACKETINGS)
def test_a_file_that_is_no_bracketing_is_named_with_the_line(
    path: Path, content: str | bytes, message: str
) -> None:
    assert error_of(path, content) == message


def nested(depth: int) -> str:
    """Returns a tree of so many nested brackets."""
    return "(S " * (depth - 1) + "(NN a)" + ")" * (depth - 1)


def test_trees_far_deeper_than_treebanks_have_are_read(path: Path) -> None:
    assert read(path, f"{RAN}\n{nested(MAX_DEPTH)}") == [RAN, nested(MAX_DEPTH)]


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 2000, 100_000])
def test_a_tree_too_deep_to_be_walked_is_named_with_the_line(path: Path, depth: int) -> None:
    message = f", line 2: more than {MAX_DEPTH} nested brackets"
    assert error_of(path, f"{RAN}\n{nested(depth)}\n{RAN}") == message


def test_trees_before_the_fault_are_read(path: Path) -> None:
    path.write_text(f"{SLEEPS}\n{RAN[:-1]}\n")
    trees = read_trees(path)
    assert bracketing(next(trees)) == SLEEPS
    with pytest.raises(T2TError, match="line 2"):
        next(trees)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.mrg", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(T2TError) as raised:
            list(read_trees(path))
        assert str(raised.value) == f"{path}: {reason}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "gold: 0 trees instead of one"),
        (RAN + RAN, "gold: 2 trees instead of one"),
        ("(S (NN a) b)", "gold: a word without a tag in '(S (NN a) b)'"),
    ],
)
def test_no_tree_or_several_are_refused(text: str, message: str) -> None:
    with pytest.raises(T2TError) as raised:
        parse(text, "gold")
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("word", "written"), [("(", "-LRB-"), (")", "-RRB-"), (":-)", ":--RRB-"), ("[", "["), ("dog", "dog")]
)
def test_brackets_in_words_are_escaped(word: str, written: str) -> None:
    assert escaped(word) == written
