"""Packages of extras: what a command says without them, and what it does all the same."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from t2t_revival import T2TError, registry
from t2t_revival.cli import parseval
from t2t_revival.utils.extras import EXTRAS, require


@pytest.mark.parametrize("package", EXTRAS)
def test_the_message_names_an_extra_that_installs_the_package(package, monkeypatch, tmp_path):
    requirements = metadata.requires("t2t_revival") or []
    extra = f'extra == "{EXTRAS[package]}"'
    assert any(line.replace("-", "_").startswith(package) and extra in line for line in requirements)
    (tmp_path / f"{package}.py").write_text("from sys import nothing_of_this_name")  # installed, but broken
    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    for reason in ("cannot import name 'nothing_of_this_name'", f"import of {package} halted"):
        with pytest.raises(T2TError, match=rf'^--flag needs {package} \({reason}.*\): pip install "t2t_rev'):
            require(package, "--flag")
        monkeypatch.setitem(sys.modules, package, None)


def test_a_parser_needs_nltk(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(T2TError, match="problem parse_wsj needs nltk"):
        registry.problem("parse_wsj")
    assert "parse_wsj" in registry.list_problems()
    assert parseval.main(["t2t-parseval", "--gold=x", "--predicted=y"]) == 1
    assert "t2t-parseval needs nltk" in capsys.readouterr().err
