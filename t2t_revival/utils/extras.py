"""Packages that only a part of this project needs."""

from __future__ import annotations

from importlib.util import find_spec

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


def need(package: str, what: str) -> None:
    """Raises T2TError if a package is not installed that `what` needs."""
    if not find_spec(package):
        raise T2TError(f'{what} needs {package}: pip install "t2t_revival[{EXTRAS[package]}]"')
