"""Searches as tests call them: one function for all engines; oracle tests make none by themselves.

A test says what it asks for (`Request`) and gets the hypotheses of each sentence, best first;
`search_engines.py` says which engines can do it. TensorFlow is imported by the functions that need it.
"""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from t2t_revival import DecodeHParams, Transformer
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.text_encoder import PAD
from t2t_revival.decoding.engine import Inputs, SearchSettings
from t2t_revival.decoding.hypothesis_scores import PENALTIES
from t2t_revival.decoding.lines.local_search import draws_of_lines
from tests.support.jax_process import JaxProcess
from tests.support.search_engines import CANNOT

Ids = Sequence[int]
INSIDE = 4  # the token that continues the word before it, where phrases are searched for
FEW_TOKENS = 64  # of a batch on JAX


@dataclass(frozen=True)
class Hypothesis:
    """An output: its ids without padding, EOS included unless it is cut, and its score."""

    ids: list[int]
    score: float


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """Phrases of a sentence's outputs, in tokens.

    Attributes:
        wanted: an output has each of them, and as often as it is there.
        avoid: an output has none of these.
        after: what ends a phrase: "word", no token that continues its word; "anything"; or "at once", without
            a look at what follows.
    """

    wanted: Sequence[tuple[int, ...]] = ()
    avoid: Sequence[tuple[int, ...]] = ()
    after: str = "word"


@dataclass(frozen=True)
class Samples:
    """How outputs are drawn: see `DecodeHParams`; `lines` are the sentences' numbers, from 1 if left out."""

    temperature: float = 1.0
    top_k: int = -1
    seed: int = 0
    lines: Ids | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """A question to a search.

    Attributes:
        beams, alpha, extra: beam_size, alpha and extra_length of `DecodeHParams`; lists have a value for each
            sentence, as n may.
        n: outputs of a sentence.
        spare: see `SearchSettings`.
        prefixes: of the outputs of each sentence; [] forces nothing.
        phrases: of each sentence.
        trees: pieces of the vocabulary, if outputs are trees.
        guards: those of `DecodeHParams`.
        samples: outputs are drawn, not searched for.
        early_stopping: see `DecodeHParams`.
        banned: a token that no output has.
        frozen: whether the model's weights do not change.
    """

    beams: Any = 4
    alpha: Any = 0.6
    extra: Any = 50
    n: Any = 1
    spare: int = 0
    prefixes: Sequence[Ids] | None = None
    phrases: Sequence[Phrases] | None = None
    trees: tuple[str, ...] = ()
    guards: tuple[tuple[str, float], ...] = ()
    samples: Samples | None = None
    early_stopping: bool = False
    banned: int = PAD
    frozen: bool = False

    @property
    def compiled(self) -> dict[str, Any]:
        """The settings that a search is compiled with."""
        names = ("trees", "guards", "early_stopping", "banned", "frozen")
        return {name: getattr(self, name) for name in names}

    @property
    def penalties(self) -> dict[str, float]:
        """The guards that are penalties."""
        return {name: value for name, value in self.guards if name in PENALTIES}

    @property
    def needs(self) -> set[str]:
        """The abilities that an engine must have."""
        names = {*self.compiled, "prefixes", "phrases", "samples", "spare"}
        needs = {name for name in names if getattr(self, name) not in (None, (), False, PAD)}
        if any(isinstance(value, list) for value in (self.beams, self.alpha, self.extra, self.n)):
            needs.add("settings")
        return needs


def search(
    model: Any,
    sources: Sequence[Ids],
    *,
    engine: str = "tensorflow",
    guards: dict[str, float] | None = None,
    **asked: Any,
) -> list[list[Hypothesis]]:
    """Searches for outputs of each sentence.

    Args:
        model: its weights are read at each call, unless it is `frozen`.
        sources: ids that end with EOS; a sentence without ids has no outputs.
        engine: one of `search_engines.ENGINES`.
        guards: options of `DecodeHParams`.
        asked: see `Request`.
    """
    request = Request(guards=tuple(sorted((guards or {}).items())), **asked)
    refused = request.needs & CANNOT[engine].keys()
    assert not refused, [CANNOT[engine][need] for need in sorted(refused)]
    ids, scores = _ENGINES[engine](model, padded(sources), request)
    return [_hypotheses(*row) for row in zip(np.asarray(ids), np.asarray(scores), strict=True)]


def padded(rows: Sequence[Ids]) -> np.ndarray:
    """Ids as int32 [rows, longest], padded with 0."""
    table = np.full((len(rows), max(map(len, rows), default=0)), PAD, np.int32)
    for row, ids in zip(table, rows, strict=True):
        row[: len(ids)] = ids
    return table


def trimmed(ids: Any) -> list[int]:
    """Ids without the padding behind them."""
    ids = np.asarray(ids).tolist()
    return ids[: ids.index(PAD)] if PAD in ids else ids


def _hypotheses(ids: np.ndarray, scores: np.ndarray) -> list[Hypothesis]:
    found = [Hypothesis(trimmed(row), float(score)) for row, score in zip(ids, scores, strict=True)]
    for one, row in zip(found, ids, strict=True):
        assert not row[len(one.ids) :].any(), "padding is at the end"
    number = int((scores > -np.inf).sum())
    assert not (scores[number:] > -np.inf).any(), "missing ones come last"
    assert not ids[number:].any(), "missing ones have no ids"
    return found[:number]


_CACHES: list[Any] = []


def cached(function: Callable[..., Any]) -> Callable[..., Any]:
    """`functools.cache` until the end of a file of tests."""
    _CACHES.append(functools.cache(function))
    return _CACHES[-1]


def forget() -> None:
    """Drops all models, searches and graphs that are `cached`."""
    for one in _CACHES:
        one.cache_clear()


_traces: Counter[str] = Counter()


@contextmanager
def counted_traces() -> Iterator[Counter[str]]:
    """Counts the programs that TensorFlow or JAX makes meanwhile: each encodes once as it is traced."""
    _traces.clear()
    start = Transformer.start_decoding

    def counted(self: Any, *arguments: Any, **more: Any) -> Any:
        _traces["programs"] += 1
        return start(self, *arguments, **more)

    with mock.patch.object(Transformer, "start_decoding", counted):
        yield _traces


def ensemble(*models: Any, mean: str = "probabilities") -> Any:
    """Returns models that are decoded as one."""
    from t2t_revival.decoding.engines.ensemble import Ensemble

    return Ensemble(models, mean)


def score(
    model: Any, sources: Sequence[Ids], targets: Sequence[Ids], engine: str = "tensorflow"
) -> np.ndarray:
    """Returns the log-probabilities of given outputs, [sentences]."""
    if engine == "ctranslate2":
        with _converted(model) as converted:
            return converted.score(padded(sources), padded(targets))
    return np.asarray(_engine(model).score(padded(sources), padded(targets)))


# TensorFlow


@cached
def _engine(model: Any, **how: Any) -> Any:
    """How is what `Request.compiled` has, and more options of `DecodeHParams`."""
    from t2t_revival.decoding.engine import EngineConfig
    from t2t_revival.decoding.engines.tensorflow_engine import TensorFlowEngine

    trees, banned = how.pop("trees", ()), how.pop("banned", PAD)
    options = dict(how.pop("guards", ())) | {"constrained": bool(trees)}
    config = EngineConfig(constant_weights=how.pop("frozen", False))
    vocabulary: Any = SimpleNamespace(pieces=trees, banned=banned, first=0)
    engine = TensorFlowEngine(model, vocabulary, DecodeHParams(**options, **how), config)
    engine.graph.spelling = _Spelling(model.target_vocab_size)  # type: ignore[misc]
    return engine


def _inputs(rows: np.ndarray, request: Request) -> Inputs:
    settings = SearchSettings(
        *(request.beams, request.extra, request.n, {"alpha": request.alpha}),
        penalties=request.penalties,
        spare=request.spare,
    )
    return Inputs(rows, settings, () if request.prefixes is None else padded(request.prefixes))


def _tensorflow(model: Any, rows: np.ndarray, request: Request) -> tuple[Any, Any]:
    engine, inputs = _engine(model, **request.compiled), _inputs(rows, request)
    if request.phrases is not None:
        inputs = inputs._replace(tables=_tables(rows, request, engine.spelling))
    if request.samples:
        one = request.samples
        lines = one.lines or range(1, len(rows) + 1)
        longest = max(rows.shape[1], 1 + np.shape(inputs.prefixes)[-1]) + request.extra
        draws = draws_of_lines(one.seed, lines, longest, request.n, one.temperature, one.top_k)
        inputs = inputs._replace(draws=draws)
    return engine.search(inputs)


class _Spelling:
    """Stands for a vocabulary in which `INSIDE` alone continues a word."""

    closing = PAD

    def __init__(self, vocab_size: int) -> None:
        self.classes = np.full(vocab_size, 3, np.int32)
        self.classes[INSIDE] = 1

    def automaton(self, forms: Any) -> Any:
        from t2t_revival.addons.lexical.phrases import automaton

        return automaton(forms, self)


def _tables(rows: np.ndarray, request: Request, spelling: Any) -> Any:
    from t2t_revival.addons.lexical.phrases import ANYTHING, AT_ONCE, BOUNDARY, Form
    from t2t_revival.addons.lexical.tables import LineAutomata, Unit, tables_of

    after = {"word": BOUNDARY, "anything": ANYTHING, "at once": AT_ONCE}
    lines = []
    for phrases in request.phrases or ():
        units = [
            *((phrase, number) for phrase, number in Counter(phrases.wanted).items()),
            *((phrase, 0) for phrase in phrases.avoid),
        ]
        forms = [Unit((Form(phrase, after=after[phrases.after]),), number) for phrase, number in units]
        lines.append(LineAutomata(forms, spelling))
    return tables_of(lines, (rows != PAD).sum(1) + request.extra)


@cached
def _exported_graph(model: Any, **how: Any) -> Any:
    import tensorflow as tf

    return tf.function(_engine(model, **how).graph.search, autograph=False)


def _exported(model: Any, rows: np.ndarray, request: Request) -> tuple[Any, Any]:
    """As in the graph of an export: each sentence has settings of its own."""
    import tensorflow as tf

    beams, extra, n, alpha = (
        tf.constant(np.broadcast_to(np.asarray(value, dtype), len(rows))[:, None])
        for value, dtype in (
            (request.beams, np.int32),
            (request.extra, np.int32),
            (request.n, np.int32),
            (request.alpha, np.float32),
        )
    )
    prefixes = () if request.prefixes is None else tf.constant(padded(request.prefixes))
    graph = _exported_graph(model, **request.compiled)
    settings = SearchSettings(
        beams, extra, n, {"alpha": alpha}, request.penalties, tf.constant(request.spare)
    )
    return graph(Inputs(tf.constant(rows), settings, prefixes))


@cached
def _fixed_graph(model: Any, beams: int, n: int, spare: int, early_stopping: bool, banned: int) -> Any:
    import tensorflow as tf

    from t2t_revival.decoding.search.fixed_shape_search import search as fixed_search

    @functools.partial(tf.function, autograph=False)
    def graph(rows: Any, alpha: Any, extra: int) -> Any:
        settings = SearchSettings(beams, extra, n, {"alpha": alpha}, {}, spare)
        options = DecodeHParams(early_stopping=early_stopping)
        return fixed_search(model, rows, settings, options, banned)

    # In a graph, Keras's loop loses the only cache of one layer.
    return graph if model.hparams.decoder_layers > 1 else graph.python_function


def _fixed(model: Any, rows: np.ndarray, request: Request) -> tuple[Any, Any]:
    """The search of JAX, computed by TensorFlow."""
    import tensorflow as tf

    sizes = request.beams, request.n, request.spare
    graph = _fixed_graph(model, *sizes, request.early_stopping, request.banned)
    ids, scores, length = graph(tf.constant(rows), tf.constant(request.alpha, tf.float32), request.extra)
    assert not np.asarray(ids)[:, :, int(length) :].any()
    return np.asarray(ids)[:, :, : int(length)], scores


# JAX, in a process of its own


@functools.cache
def _jax_process() -> JaxProcess:
    return JaxProcess(answer_on_jax)


def _jax(model: Any, rows: np.ndarray, request: Request) -> tuple[Any, Any]:
    weights = model.get_weights()
    *found, programs = _jax_process()(model.hparams, model.vocab_size, weights, rows, request)
    _traces["programs"] += programs
    return found[0], found[1]


@functools.cache
def _jax_search(hparams: Any, vocab_size: int, early_stopping: bool, banned: int) -> Any:
    model = Transformer(hparams, vocab_size)
    return model, jax_engine(model, early_stopping=early_stopping, banned=banned)


def jax_engine(model: Any, banned: int = PAD, **options: Any) -> Any:
    """Returns the engine of JAX, which only a process can call in which Keras is on JAX."""
    from t2t_revival.decoding.engine import EngineConfig
    from t2t_revival.decoding.engines.jax_engine import JaxEngine

    vocabulary: Any = SimpleNamespace(banned=banned, first=0)
    return JaxEngine(model, vocabulary, DecodeHParams(batch_size=FEW_TOKENS, **options), EngineConfig())


def answer_on_jax(
    hparams: Any, vocab_size: int, weights: Any, rows: np.ndarray, request: Request
) -> tuple[np.ndarray, np.ndarray, int]:
    """Searches in the process of JAX; returns ids, scores, and the number of programs that were made."""
    model, own = _jax_search(hparams, vocab_size, request.early_stopping, request.banned)
    model.set_weights(weights)
    with counted_traces() as traces:
        ids, scores = own.search(_inputs(rows, request))
    return np.asarray(ids), np.asarray(scores), traces["programs"]


# Other engines


def _vocabularies(size: int) -> Vocabularies:
    """One that is tokens alone, for formats that write it beside the model."""
    pieces = ["<pad>", "</s>", "<unk>", *(f"<{token}>" for token in range(3, size))]
    tokens = SimpleNamespace(
        pieces=pieces,
        size=size,
        unknown=2,
        banned=PAD,
        first=PAD,
        fingerprint="",
        content=b"",
        path=Path("v.spm"),
    )
    return Vocabularies(tokens, tokens)  # type: ignore[arg-type]


@contextmanager
def _converted(model: Any) -> Iterator[Any]:
    from t2t_revival.addons.ctranslate2.engine import CTranslate2Engine, CTranslate2Model
    from t2t_revival.checkpoints import directory
    from t2t_revival.decoding.engine import EngineConfig

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.ckpt-1.npz")
        directory.save(path, directory.model_arrays(model), {"step": 1})
        vocabularies, options, config = _vocabularies(model.vocab_size), DecodeHParams(), EngineConfig()
        converted = CTranslate2Model(model.hparams, vocabularies, options, config, lambda note: None)
        converted.load_checkpoint(directory.list_checkpoints(Path(folder))[0])
        yield CTranslate2Engine(converted, vocabularies.targets, options, config)


def _ctranslate2(model: Any, rows: np.ndarray, request: Request) -> tuple[Any, Any]:
    with _converted(model) as engine:
        return engine.search(_inputs(rows, request))


def _litert(model: Any, rows: np.ndarray, request: Request) -> tuple[Any, Any]:
    import tensorflow as tf

    from t2t_revival.addons.litert import MODEL, write_litert

    assert request.n in (1, request.beams), "an export has one output or beam_size"
    options = DecodeHParams(
        beam_size=request.beams,
        alpha=request.alpha,
        extra_length=request.extra,
        return_beams=request.n > 1,
        early_stopping=request.early_stopping,
    )
    own = SimpleNamespace(options=options, model=model, vocabularies=_vocabularies(model.vocab_size))
    with tempfile.TemporaryDirectory() as folder:
        write_litert(own, Path(folder, "model"))  # type: ignore[arg-type]
        run = tf.lite.Interpreter(str(Path(folder, "model", MODEL))).get_signature_runner()
        found = run(inputs=rows)
    scores = found["scores"]
    return found["outputs"], np.where(scores > -1e38, scores, -np.inf)


_ENGINES: dict[str, Callable[[Any, np.ndarray, Request], tuple[Any, Any]]] = {
    "tensorflow": _tensorflow,
    "exported": _exported,
    "fixed": _fixed,
    "jax": _jax,
    "ctranslate2": _ctranslate2,
    "litert": _litert,
}
