"""Packages that only a part of this project needs."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from t2t_revival.errors import T2TError

EXTRAS = {  # of setup.py, by a package that each installs
    "apache_beam": "beam",
    "ctranslate2": "ctranslate2",
    "datasets": "hf",
    "eflomal": "alignments",
    "fastapi": "server",
    "huggingface_hub": "hf",
    "matplotlib": "plots",
    "nltk": "parsing",
    "prometheus_client": "server",
    "safetensors": "hf",
    "sentencex": "sentences",
    "uvicorn": "server",
}


def require(name: str, what: str) -> ModuleType:
    """Imports a package that `what` needs; raises T2TError if it is not installed, or broken."""
    try:
        return import_module(name)
    except ImportError as error:
        raise T2TError(f'{what} needs {name} ({error}): pip install "t2t_revival[{EXTRAS[name]}]"') from error
