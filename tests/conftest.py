"""Settings and fixtures that all tests share."""

import ctypes
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from t2t_revival import HParams, registration, sample_corpus
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")  # oneDNN's own returns no memory
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # also after a test in which lines are typed
gc.disable()  # until all is imported
# A busy machine may stop for longer than the deadline.
NIGHTLY = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200, derandomize=False
)
settings.register_profile("nightly", NIGHTLY)
# CI tries the same examples for each change.
settings.register_profile("tests", NIGHTLY, max_examples=25, derandomize="CI" in os.environ)
settings.load_profile("tests")
TESTS = Path(__file__).parent
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
TEXT = [f"the {noun} sees {number} houses . der {noun}" for noun in ("dog", "cat") for number in range(9)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begins to collect garbage, but not among imports, which would take a second each time."""
    gc.freeze()
    gc.enable()
    processes = sys.modules.get("tests.support.processes")
    if processes and any(item.get_closest_marker("slow") for item in session.items):
        processes.start_server()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Records what is skipped, so that CI runs it again with more packages; see .ci/run."""
    record_skipped(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Records whole files that are skipped."""
    record_skipped(report)


def record_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    path = os.environ.get("SKIPPED_TESTS")
    if path and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].replace("\n", " ")
        with open(path, "a", encoding="utf-8") as file:  # also by workers, so that lines may occur twice
            file.write(f"{report.nodeid}\t{reason}\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints each reason for which tests were skipped, once, with their number."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number} skipped: {' '.join(reason.split())}")


@pytest.fixture(scope="module", autouse=True)
def free_memory() -> Iterator[None]:
    """Frees the graphs of each file of tests, so that a process stays below 2.5 GB."""
    yield
    if "tensorflow" not in sys.modules:
        return
    import keras
    from tensorflow.python.framework import ops

    gradients = ops.gradient_registry._registry  # a custom gradient in it keeps its whole graph alive
    names = [name for name in gradients if name.startswith("CustomGradient-")]
    if not names:
        return
    for name in names:
        del gradients[name]
    if tiny_models := sys.modules.get("tests.support.tiny_models"):
        tiny_models.forget()
    gc.collect()
    keras.backend.clear_session(free_memory=False)  # of kernels, which hold what has become free
    ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True)
def restored_registry() -> Iterator[None]:
    """Removes a test's registrations and users' packages; built-in names, made at a first look-up, stay."""
    packages = registration.PACKAGES
    tables: list[dict] = [
        registration.PROBLEMS,
        registration.HPARAMS,
        registration.SCHEDULE_FACTORS,
        packages,
    ]
    before = [dict(table) for table in tables]
    yield
    imported = packages.keys() - before[-1].keys()
    for table, entries in zip(tables, before, strict=True):
        made = {name: entry for name, entry in table.items() if is_built_in(entry)}
        table.clear()
        table.update(made | entries)
    for name in [name for name in sys.modules if name.partition(".")[0] in imported]:
        del sys.modules[name]


def is_built_in(entry: object) -> bool:
    return getattr(entry, "__module__", "").startswith("t2t_revival.")


@pytest.fixture
def tiny_hparams() -> HParams:
    """2+2 layers, 8/16, 2 heads, no dropout: the smallest model in which nothing is trivial."""
    return HParams(
        num_hidden_layers=2,
        hidden_size=8,
        filter_size=16,
        num_heads=2,
        layer_prepostprocess_dropout=0.0,
        learning_rate_warmup_steps=10,
    )


@pytest.fixture
def few_sample_sentences(monkeypatch):
    """Called with numbers of sentences by split, makes the sample corpus as small."""
    lines = sample_corpus.lines
    return lambda **sizes: monkeypatch.setattr(
        sample_corpus, "lines", lambda name: lines(name)[: sizes[name.partition(".")[0]]]
    )


@pytest.fixture
def reference_dir() -> Path:
    """Numbers that tensor2tensor computed; tests/reference/README.md says how."""
    return TESTS / "reference"


@pytest.fixture(scope="session")
def subwords_file(tmp_path_factory):
    """Few subtokens, the longer ones made so that greedy choices matter; each character is one."""
    alphabet = {c for subtoken in SUBTOKENS for c in subtoken} | set("\\_u;0123456789 abc\u00a0日")
    subtokens = [*SUBTOKENS, *sorted(alphabet.difference(SUBTOKENS))]
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.translate_ende_toy.64.subwords"
    path.write_text("".join(f"'{subtoken}'\n" for subtoken in subtokens), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def vocabulary_file(tmp_path_factory):
    """A vocabulary of 310 pieces."""
    return Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 310).path


@pytest.fixture(scope="module")
def vocabulary(vocabulary_file):
    """A vocabulary per module, since a new random seed makes TensorFlow lose SentencePiece's resources."""
    return Vocabulary(vocabulary_file)


@pytest.fixture(scope="session")
def exported_version(vocabulary_file, tmp_path_factory):
    """The only version in an export_dir, which no test writes to; see tests/support/exported.py."""
    from tests.support.exported import export_tiny

    return export_tiny(vocabulary_file, tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="module")
def chromium():
    """A browser without windows."""
    from playwright.sync_api import sync_playwright

    from tests.server.page_server import BROWSER

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()
