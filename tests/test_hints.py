"""Commands in messages: quoting, omitted flags, and no command that is put together elsewhere."""

import ast
import re
import shlex
from itertools import pairwise
from pathlib import Path

from t2t_revival import T2TError, Text2TextProblem, registry
from t2t_revival.errors import CommandLine
from tests.support.source_tree import MODULES, parsed

BY_HAND = re.compile(r"\bt2t-[a-z-]+ (--\w+=\S* )*--\w+=$")  # what stands before a value that is filled in


def test_what_is_quoted_and_what_is_left_out() -> None:
    command = CommandLine(
        "t2t-x", a="it's", b=Path("a b"), c=None, d="", e=False, f=True, g=0, h=[], i=["x y", "z"], j="~/z"
    )
    line = str(command)
    assert line == "t2t-x --a='it'\"'\"'s' --b='a b' --f --g=0 --i='x y,z' --j='~/z'"
    assert shlex.split(line) == ["t2t-x", "--a=it's", "--b=a b", "--f", "--g=0", "--i=x y,z", "--j=~/z"]


def test_the_data_of_a_problem() -> None:
    asked = registry.problem("translate_ende", data_source="tfds:a/b", vocab_size=300)
    folder = Path("da ta")
    start = "t2t-datagen --problem=translate_ende --data_dir='da ta'"
    assert str(asked.datagen_command(folder)) == f"{start} --data_source=tfds:a/b --vocab_size=300"
    assert str(registry.problem("translate_ende").datagen_command(folder, [Path("v.spm")])) == (
        f"{start} --vocab_file=v.spm"
    ), "wmt14 is the default"
    refused = registry.problem("translate_enzh", clean=False, separate_vocabularies=False)
    assert str(refused.datagen_command(folder)).endswith(" --noclean --noseparate_vocabularies")
    assert str(registry.problem("parse_wsj").datagen_command(Path("d"))) == (
        "t2t-datagen --problem=parse_wsj --data_dir=d --data_source=FOLDER"
    ), "there is no default"


def test_a_users_problem() -> None:
    class TranslateEncs(Text2TextProblem):
        source_lang, target_lang = "en", "cs"

    start = "t2t-datagen --problem=translate_encs --data_dir=d"
    command = TranslateEncs().datagen_command(Path("d"))
    assert str(command) == f"{start} --data_source=FOLDER", "WMT 2014 has no Czech"
    TranslateEncs.tfds_default = "wmt16_translate/cs-en"
    command = TranslateEncs().datagen_command(Path("d"))
    assert str(command) == start
    error = T2TError("heads cannot be chosen: ", T2TError("no data: run ", command), "; or give others")
    assert str(error) == f"heads cannot be chosen: no data: run {start}; or give others"
    assert error.message("my code") == (
        f"heads cannot be chosen: no data: run {start} --t2t_usr_dir='my code'; or give others"
    )


def test_no_command_is_put_together_by_hand() -> None:
    """Rejects f-strings with a flag's value, which would not be quoted."""
    found = [
        f"{path}, line {node.lineno}"
        for path in MODULES.values()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.JoinedStr)
        for before, value in pairwise(node.values)
        if isinstance(value, ast.FormattedValue) and isinstance(before, ast.Constant)
        if BY_HAND.search(str(before.value))
    ]
    assert found == []
    assert BY_HAND.search("next: t2t-x --a=1 --b=")
