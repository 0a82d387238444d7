"""Names of problems and hparams sets, and a user's own package."""

import re
import sys
from pathlib import Path

import pytest

from t2t_revival import HParams, T2TError, registry
from tests.support.tables import table

TABLES = Path(__file__).with_name("registry.txt")


def test_snake_case() -> None:
    for name, snake in table(TABLES, "snake case"):
        assert registry.snake_case(name) == snake


def test_known_names() -> None:
    assert {"translate_ende", "translate_enfr"} <= set(registry.list_problems())
    assert registry.problem("translate_ende").name == "translate_ende"
    assert registry.hparams("base", "num_heads=4") == HParams(num_heads=4)
    assert registry.list_hparams()["base"].startswith("The paper's base model")
    assert list(registry.list_hparams()) == sorted(registry.list_hparams())


@pytest.mark.parametrize(("kind", "name", "message"), table(TABLES, "unknown names"))
def test_unknown_names(kind: str, name: str, message: str) -> None:
    with pytest.raises(T2TError, match=f"^{re.escape(message)}"):
        getattr(registry, kind)(name)


def test_registering_a_name_twice() -> None:
    def base() -> HParams:
        return HParams()

    with pytest.raises(T2TError) as raised:
        registry.register_hparams(base)
    modules = "t2t_revival.hparams.base and tests.test_registry"
    assert str(raised.value) == f"hparams set 'base' is registered twice, in {modules}: rename one of them"


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
from t2t_revival import HParams
from t2t_revival import Text2TextProblem

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


def test_an_error_in_a_users_package_is_pythons_own(tmp_path: Path) -> None:
    folder = package(tmp_path / "usr_broken", "1 / 0")
    with pytest.raises(ZeroDivisionError):
        registry.import_usr_dir(folder)
    assert "usr_broken" not in sys.modules
    (tmp_path / "usr_broken" / "__init__.py").write_text(MINE.replace("num_heads=2", "num_heads=16"))
    registry.import_usr_dir(folder)
    assert registry.hparams("usr_set").num_heads == 16


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "from tensor2tensor.data_generators import text_problems",
            r"tensor2tensor's names are in t2t_revival: .* t2t_revival/from_tensor2tensor.md",
        ),
        ("import usr_nowhere", "--t2t_usr_dir=.*usr_refused: No module named 'usr_nowhere'$"),
        (MINE.replace("usr_set", "base"), "hparams set 'base' is registered twice"),
    ],
)
def test_a_users_package_that_is_refused(code: str, message: str, tmp_path: Path) -> None:
    folder = package(tmp_path / "usr_refused", code)
    with pytest.raises(T2TError, match=message):
        registry.import_usr_dir(folder)


def test_a_name_twice_in_a_users_package(tmp_path: Path) -> None:
    folder = package(tmp_path / "usr_twice", "from . import one, two")
    (tmp_path / "usr_twice" / "one.py").write_text(MINE)
    (tmp_path / "usr_twice" / "two.py").write_text(MINE.replace("usr_set", "another"))
    with pytest.raises(T2TError, match=r"problem 'usr_problem' .* twice, in usr_twice\.one"):
        registry.import_usr_dir(folder)


def test_a_name_of_a_package_that_is_not_imported() -> None:
    with pytest.raises(T2TError, match=r"unknown problem 'usr_problem'.* \(one of your own"):
        registry.problem("usr_problem")


def test_a_package_that_registers_nothing(tmp_path: Path) -> None:
    folder = package(tmp_path / "usr_idle", "")
    (tmp_path / "usr_idle" / "inner.py").write_text(MINE)
    registry.import_usr_dir(folder)
    with pytest.raises(T2TError, match=rf"\({folder} registers nothing: its __init__\.py"):
        registry.problem("usr_problem")


@pytest.mark.parametrize("name", ["json", "this"])
def test_a_users_package_named_as_another_module(name: str, tmp_path: Path) -> None:
    before = sys.modules.get(name)
    folder = package(tmp_path / name, "")
    with pytest.raises(T2TError, match=f"'{name}' is already the name of another module; rename the folder"):
        registry.import_usr_dir(folder)
    assert sys.modules.get(name) is before


def test_no_package_there(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match=f"--t2t_usr_dir=usr_none: no such folder \\({Path.cwd()}/usr_none\\)"):
        registry.import_usr_dir("usr_none")
    with pytest.raises(T2TError, match="a package's name cannot have a dot"):
        registry.import_usr_dir(package(tmp_path / "usr_v1.2", ""))
    with pytest.raises(T2TError, match=r"no __init__\.py there"):
        registry.import_usr_dir(str(tmp_path))
    (tmp_path / "mine.py").touch()
    with pytest.raises(T2TError, match=f"not a folder but a file; give its folder: {tmp_path}"):
        registry.import_usr_dir(str(tmp_path / "mine.py"))


def test_arguments_of_other_types() -> None:
    with pytest.raises(T2TError, match=r"{'num_heads': 4} is not a string of settings"):
        registry.hparams("base", {"num_heads": 4})  # type: ignore[arg-type]
    with pytest.raises(T2TError, match="hparams: num_heads='4' is not of type int"):
        registry.hparams("base").replace(num_heads="4")
