"""Installation of t2t_revival.

`problems/` and `hparams/` stand at the top of the checkout, where people look for them; they are
installed as `t2t_revival.problems` and `t2t_revival.hparams`.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
PACKAGE = (ROOT / "t2t_revival" / "__init__.py").read_text(encoding="utf-8")
(VERSION,) = re.findall(r'^__version__ = "(.+?)"', PACKAGE, re.MULTILINE)
COMMANDS = (
    "align",
    "attention",
    "avg_all",
    "back_translate",
    "bleu",
    "datagen",
    "decoder",
    "distill",
    "eval",
    "exporter",
    "import_checkpoint",
    "make_tf_configs",
    "parseval",
    "query_server",
    "reproduce",
    "server",
    "shortlist",
    "trainer",
    "translate_all",
)
PARTS = {  # what only a part of the project needs; t2t_revival/utils/extras.py names them in messages
    "ctranslate2": ["ctranslate2>=4.8"],
    "hf": ["datasets>=5.2,<6", "huggingface_hub>=1", "safetensors>=0.5"],
    "litert": ["ai-edge-litert>=2.3"],
    "parsing": ["nltk>=3.9"],
    "plots": ["matplotlib>=3.8"],
    "sentences": ["sentencex>=1.0"],
    "server": [
        "fastapi>=0.115",
        "httptools>=0.6",
        "prometheus-client>=0.21",
        "sentencex>=1.0",
        "uvicorn>=0.30",
        "uvloop>=0.20",
    ],
}

setup(
    name="t2t_revival",
    version=VERSION,
    description="The Transformer of 'Attention Is All You Need', as tensor2tensor offered it, on Keras 3",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The t2t_revival authors",
    keywords="transformer machine-translation tensor2tensor keras tensorflow jax",
    license="Apache-2.0",
    classifiers=[
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    python_requires=">=3.10,<3.13",  # for which TensorFlow Text has wheels
    packages=[
        *find_packages(include=["t2t_revival", "t2t_revival.*"]),
        "t2t_revival.problems",
        "t2t_revival.hparams",
    ],
    package_dir={"t2t_revival.problems": "problems", "t2t_revival.hparams": "hparams"},
    package_data={
        "t2t_revival": ["from_marian.md", "from_tensor2tensor.md", "py.typed"],
        "t2t_revival.sample_corpus": ["corpus.zip"],
        "t2t_revival.addons.server.page": ["page.html", "page.css", "page.js"],
        "t2t_revival.serving": ["translate.cc"],
        "t2t_revival.addons": ["bergamot.html"],
        "t2t_revival.addons.attention": ["attention.html", "attention.css", "attention.js"],
    },
    install_requires=[
        "absl-py>=2.1",
        "google-crc32c>=1.5",
        "grpcio>=1.60",
        "importlib_resources>=6.0",  # tensorflow-datasets 4.9.10 imports it without declaring it
        "keras>=3.15,<4",
        "keras-nlp>=0.32",
        "numpy>=1.26",
        "pyyaml>=6",
        "requests>=2.32",
        "sacrebleu>=2.4",
        "sacremoses>=0.1",
        "scipy>=1.12",
        "sentencepiece>=0.2",
        "tensorboard>=2.19",
        "tensorflow>=2.21,<2.22",
        "tensorflow-datasets>=4.9.10",
        "tensorflow-serving-api>=2.21,<2.22",
        "tensorflow-text>=2.21,<2.22",
        "tqdm>=4.66",
        "urllib3>=2",
    ],
    extras_require={
        **PARTS,
        "all": [package for part in PARTS.values() for package in part],
        "alignments": ["eflomal>=2.0"],  # its wheel is compiled where it is installed
        "beam": ["apache-beam>=2.77,<3"],
        "cuda": ["tensorflow[and-cuda]>=2.21,<2.22"],
        "dev": [
            "t2t_revival[all,beam]",
            "axe-playwright-python>=0.1.4",
            "build>=1.2",
            "httpx2>=2",
            "hypothesis>=6.100",
            "mypy>=1.15",
            "pre-commit>=4.0",
            "pyevalb>=0.1.3",
            "pytest>=8.2",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.6",
            "ruff>=0.12",
        ],
        "docs": ["mkdocs>=1.6,<2", "mkdocs-material>=9.5", "mkdocstrings[python]>=0.29"],
        "jax": ["jax>=0.6"],
        "marian": ["pymarian==1.12.42"],  # for its tests; 600 MB
        "torch": ["torch>=2.6"],
    },
    entry_points={
        "console_scripts": [
            f"t2t-{command.replace('_', '-')} = t2t_revival.cli.{command}:main" for command in COMMANDS
        ]
    },
)
