"""Names of problems and hparams sets, and a user's own package."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams


@pytest.fixture(autouse=True)
def unchanged_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registrations and imports of a test end with it."""
    registry.list_hparams(), registry.list_problems()
    monkeypatch.setattr(registry, "_HPARAMS", dict(registry._HPARAMS))
    monkeypatch.setattr(registry, "_PROBLEMS", dict(registry._PROBLEMS))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("usr_"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("TranslateEnde", "translate_ende"),
        ("TranslateEnde32k", "translate_ende32k"),
        ("ParseWSJ", "parse_wsj"),
        ("WSJParse", "wsj_parse"),
        ("Wmt14Task", "wmt14_task"),
        ("base", "base"),
    ],
)
def test_snake_case(name: str, snake: str) -> None:
    assert registry.snake_case(name) == snake


def test_known_names() -> None:
    assert {"translate_ende", "translate_enfr"} <= set(registry.list_problems())
    assert registry.problem("translate_ende").name == "translate_ende"
    assert registry.hparams("base", "num_heads=4") == HParams(num_heads=4)
    assert registry.list_hparams()["base"].startswith("The paper's base model")
    assert list(registry.list_hparams()) == sorted(registry.list_hparams())


@pytest.mark.parametrize(
    ("look_up", "name", "message"),
    [
        (
            registry.problem,
            "translate_endee",
            "unknown problem 'translate_endee'; did you mean translate_ende",
        ),
        (registry.hparams, "table3_c_n3", "unknown hparams set 'table3_c_n3'; did you mean table3_c_n"),
        (registry.hparams, "qqqqqqq", "unknown hparams set 'qqqqqqq'; known: base, big, parsing"),
    ],
)
def test_unknown_names(look_up, name: str, message: str) -> None:
    with pytest.raises(T2TError) as raised:
        look_up(name)
    assert str(raised.value).startswith(message)


def test_registering_a_name_twice() -> None:
    def base() -> HParams:
        return HParams()

    with pytest.raises(T2TError, match=r"hparams set 'base' is registered twice: .*hparams\.base"):
        registry.register_hparams(base)


def test_a_module_may_be_loaded_again() -> None:
    def mine() -> HParams:
        return HParams(num_heads=2)

    assert registry.register_hparams(mine) is mine
    registry.register_hparams(mine)
    assert registry.hparams("mine").num_heads == 2


def package(folder: Path, code: str) -> str:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(code)
    return str(folder)


MINE = '''
from t2t_revival import registry
from t2t_revival.hparams import HParams
from t2t_revival.problems import Text2TextProblem

@registry.register_hparams
def usr_set() -> HParams:
    """Mine."""
    return HParams(num_heads=2)

@registry.register_problem
class UsrProblem(Text2TextProblem):
    """My text."""
    source_lang, target_lang = "en", "cs"
'''


def test_a_users_package(tmp_path: Path) -> None:
    folder = package(tmp_path / "usr_mine", "from . import inner")
    (tmp_path / "usr_mine" / "inner.py").write_text(MINE)
    registry.import_usr_dir(folder)
    registry.import_usr_dir(folder)
    assert registry.hparams("usr_set").num_heads == 2
    assert registry.problem("usr_problem").name == "usr_problem"
    assert registry.list_problems()["usr_problem"] == "My text."


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def (", "SyntaxError: "),
        ("import usr_nowhere", "ModuleNotFoundError: No module named 'usr_nowhere'"),
    ],
)
def test_a_users_package_that_fails(code: str, message: str, tmp_path: Path) -> None:
    folder = package(tmp_path / "usr_broken", code)
    with pytest.raises(T2TError) as raised:
        registry.import_usr_dir(folder)
    assert str(raised.value).startswith(f"--t2t_usr_dir={folder}: {message}")
    assert "usr_broken" not in sys.modules


def test_a_users_package_may_not_take_a_built_in_name(tmp_path: Path) -> None:
    folder = package(tmp_path / "usr_base", MINE.replace("usr_set", "base"))
    with pytest.raises(T2TError, match="hparams set 'base' is registered twice"):
        registry.import_usr_dir(folder)


def test_a_users_package_named_as_a_module_in_use(tmp_path: Path) -> None:
    json_module = sys.modules["json"]
    folder = package(tmp_path / "json", "")
    with pytest.raises(T2TError, match="'json' is a module in use; rename the folder"):
        registry.import_usr_dir(folder)
    assert sys.modules["json"] is json_module


@pytest.mark.parametrize("make", [True, False])
def test_no_package_there(make: bool, tmp_path: Path) -> None:
    folder = tmp_path / "usr_none"
    if make:
        folder.mkdir()
    with pytest.raises(T2TError, match=r"no __init__\.py there"):
        registry.import_usr_dir(str(folder))
