"""`t2t-server`: serves trained models over HTTP.

t2t-server --output_dir=DIR
t2t-server --saved_model=EXPORT_DIR
t2t-server --config=models.yaml

Serves trained models over HTTP: TensorFlow Serving's REST API under /v1/models, and /translate for plain
texts. The port opens at once; models are loaded then, requests wait for theirs, and /readyz tells when all
answer. An export_dir is watched: new versions take over without a pause. Ctrl-C, SIGTERM or SIGHUP ends the
server when the requests that it has are answered.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from t2t_revival.addons.server.batching import BatchLimits
from t2t_revival.addons.server.config import ModelConfig, check_name, exported_name, load_config
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.engine_flags import Engine, engine_flags
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import say, warn_of_corruption
from t2t_revival.cli.support.run_flags import ModelFlags, decode_options
from t2t_revival.cli.support.text_files import read_lines
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.options import CTRANSLATE2, FLOAT32, TENSORFLOW, DecodeHParams
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.utils.extras import require
from t2t_revival.utils.signals import ending_signals, handling

if TYPE_CHECKING:
    from t2t_revival.addons.server.versions import ServedModel
    from t2t_revival.decoding.translator import Translator

LOCAL = ("127.0.0.1", "localhost", "::1")
MEBIBYTE = 2**20
ABANDONED = threading.Event()  # set if the server ends while models are loaded


@dataclass(frozen=True)
class ServerFlags(ModelFlags, NormalizeFlags):
    exclusive = (
        *combinations(("output_dir", "saved_model", "config"), 2),
        *product(
            ("hparams_set", "checkpoint", "engine", "precision", "normalize"), ("saved_model", "config")
        ),
        *product(("servable_name", "problem"), ("config",)),
    )
    engine: Engine = engine_flags()
    saved_model: str = flag(
        "", "Instead of output_dir: an export_dir of t2t-exporter, whose newest version is served."
    )
    config: str = flag(
        "", "Instead of both: a YAML file of several models; docs/guides/server.md has its keys."
    )
    servable_name: str = flag(
        "", "Name of the model in paths; by default the problem's, or that of the export."
    )
    api_key_file: str = flag("", "File of API keys, one a line, one of which each request must have.")
    host: str = flag("127.0.0.1", "Address to listen at; 0.0.0.0 is all of this machine.")
    cors_origins: tuple[str, ...] = flag((), "Web sites whose pages may send requests; by default none.")
    access_log: bool = flag(False, "Log each request: address, path and status; never text.")
    port: int = flag(8501, "Port to listen at; 0 takes a free one.", most=65535)
    batch_size: int = flag(32, "Lines that are translated at once.", least=1, most=4096)
    batch_wait_ms: int = flag(
        5, "Milliseconds, or up to 15% of a batch's time, that a line waits for others.", most=1000
    )
    max_queue: int = flag(10_000, "Lines that may wait; with more, requests get status 503.", least=1)
    max_lines: int = flag(1024, "Lines of a request.", least=1)
    max_beam_size: int = flag(16, "Largest beam_size of a request.", least=1, most=100)
    max_body_mib: int = flag(4, "Largest body of a request, in MiB.", least=1, most=1024)
    timeout_secs: int = flag(
        60,
        "Seconds that a request waits for its model to be loaded, and seconds for its answer.",
        least=1,
        most=86_400,
    )


def _serve(flags: ServerFlags) -> None:
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require(package, "t2t-server")
    if flags.max_queue < flags.max_lines:
        raise T2TError(f"--max_queue={flags.max_queue} must be at least --max_lines={flags.max_lines}")
    configs, keys = _configs(flags), _api_keys(flags)
    with _listen(flags.host, flags.port) as listener, ExitStack() as stack:
        models = [_served(config, flags, stack) for config in configs]
        is_ctranslate2 = all(config.engine == CTRANSLATE2 for config in configs)
        _run(flags, listener, models, keys, CTRANSLATE2 if is_ctranslate2 else TENSORFLOW)


def _configs(flags: ServerFlags) -> list[ModelConfig]:
    """The models that the flags name."""
    if flags.config:
        return load_config(Path(flags.config).expanduser())
    if flags.saved_model:
        folder = Path(flags.saved_model).expanduser()
        name = check_name(flags.servable_name or exported_name(folder))
        return [ModelConfig(name, saved_model=folder, problem=flags.problem)]
    model = flags.open_model()
    name = check_name(flags.servable_name or model.run.problem)
    engine, precision = flags.engine.name, flags.engine.precision
    return [
        ModelConfig(
            name, output_dir=model.path, checkpoint=flags.checkpoint, engine=engine, precision=precision
        )
    ]


def _api_keys(flags: ServerFlags) -> list[str]:
    if not flags.api_key_file:
        return []
    keys = [line.strip() for line in read_lines(flags.api_key_file, "api_key_file") if line.strip()]
    if not keys:
        raise T2TError(f"--api_key_file={flags.api_key_file}: no key; write one on each line")
    return keys


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise T2TError(
            f"--host={host} --port={port}: {error.strerror}; give another, or 0 for a free port"
        ) from error
    return listener


def _served(config: ModelConfig, flags: ServerFlags, stack: ExitStack) -> ServedModel:
    """Returns a model that is loaded later; `stack` removes what an interrupted export leaves.

    Raises:
        T2TError: there is no such model, or an export cannot have the settings of its decoding.
    """
    from t2t_revival.addons.server.versions import ServedModel

    if config.output_dir:
        folder = ModelFolder(config.output_dir)
        options = decode_options("", folder.run, flags.normalize)
        capabilities.check(options.asked(), capabilities.SAVED_MODEL)
        prepare = partial(_prepare, config, folder, options, stack)
        return ServedModel(config.name, None, say=say, prepare=prepare)
    problem = flags.problem_of(config.problem) if config.problem else None
    served = ServedModel(config.name, config.saved_model, config.labels, config.keep, say, problem=problem)
    if served.nothing_found:
        raise T2TError(f"{config.name}: {served.nothing_found}")
    return served


def _prepare(
    config: ModelConfig, folder: ModelFolder, options: DecodeHParams, stack: ExitStack, served: ServedModel
) -> None:
    """Loads the checkpoint of an output_dir, and serves it with the number of its step."""
    from t2t_revival.addons.ctranslate2.served import TranslatorModel
    from t2t_revival.addons.server.inspection import Inspector
    from t2t_revival.decoding.translator import Translator

    def load(checkpoint: str | None, engine: str, precision: str) -> Translator:
        return Translator.load(
            folder.path,
            checkpoint,
            options,
            _start(engine),
            precision,
            constant_weights=False,
            on_damaged=warn_of_corruption,
            engine=engine,
            on_note=say,
        )

    translator = load(config.checkpoint, config.engine, config.precision)
    assert translator.checkpoint
    path, step = translator.checkpoint.path, translator.checkpoint.step
    say(f"{config.name}: {path}")
    served.problem = translator.problem
    if config.engine == CTRANSLATE2:
        served.inspector = Inspector(translator, folder, partial(load, str(path), TENSORFLOW, FLOAT32))
        served.serve(step, TranslatorModel(translator), str(translator.engine))
        return
    served.inspector = Inspector(translator, folder)
    served.serve(step, _exported(translator, folder, config.name, stack))


def _start(engine: str) -> int:
    """Imports TensorFlow if it is the engine; returns how many batches to translate side by side."""
    from t2t_revival.addons.ctranslate2.engine import num_parallel_batches

    if engine == CTRANSLATE2:
        return num_parallel_batches()
    tensorflow_setup.load_tensorflow()
    return tensorflow_setup.num_parallel_batches()


def _exported(translator: Translator, folder: ModelFolder, name: str, stack: ExitStack) -> FolderModel:
    """Returns a model on TensorFlow, as it is exported."""
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.serving.export import export

    heads = AlignmentHeads.find(folder.path, translator.model.hparams)
    made = tempfile.TemporaryDirectory(prefix="t2t-server-", ignore_cleanup_errors=True)
    stack.callback(made.cleanup)
    with made as exported:
        return FolderModel(export(translator, Path(exported), name, heads=heads))


def _run(
    flags: ServerFlags, listener: socket.socket, models: list[ServedModel], keys: list[str], engine: str
) -> None:
    """Serves until SIGINT, SIGTERM or SIGHUP, or until a model cannot be loaded."""
    import uvicorn

    from t2t_revival.addons.server.app import create_app
    from t2t_revival.addons.server.protocol import Protocol
    from t2t_revival.addons.server.requests import Limits
    from t2t_revival.addons.server.service import Start

    host, port = listener.getsockname()[:2]
    address = f"http://{'localhost' if host in LOCAL else host}:{port}"
    loaded: list[Exception | None] = []
    asked: list[int] = []  # signals

    def leave(number: int, _: FrameType | None) -> None:
        asked.append(number)
        server.should_exit = True

    def end(fault: Exception | None) -> None:
        loaded.append(fault)
        if fault:
            server.should_exit = True
            return
        say(f"serving at {address}; Ctrl-C ends it")
        say(f"next: {CommandLine('t2t-query-server', server=address, servable_name=models[0].name)}")

    limits = Limits(flags.max_lines, max_beam_size=flags.max_beam_size, timeout=flags.timeout_secs)
    batches = BatchLimits(flags.batch_size, max_wait=flags.batch_wait_ms / 1000, max_queue=flags.max_queue)
    app = create_app(
        {model.name: model for model in models},
        limits,
        batches,
        max_body=flags.max_body_mib * MEBIBYTE,
        api_keys=keys,
        cors_origins=flags.cors_origins,
        start=Start(partial(_start, engine), end, lambda: server.should_exit),
    )
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        log_level="info" if flags.access_log else "warning",
        access_log=flags.access_log,
        timeout_graceful_shutdown=flags.timeout_secs,
        server_header=False,
    )
    server = uvicorn.Server(config)
    # uvicorn handles signals only while it runs, SIGHUP not at all, and at its end raises them again.
    with handling(dict.fromkeys(ending_signals(), leave)):
        listener.listen()
        say(f"listening at {address}; loading {len(models)} model{'s' * (len(models) > 1)}")
        server.run(sockets=[listener])
    if asked and not loaded:
        ABANDONED.set()
        signal.raise_signal(asked[0])
    if loaded and loaded[0]:
        raise loaded[0]
    say("ended: all requests are answered")


class _Server(Command[ServerFlags]):
    """t2t-server: does not wait for a thread that loads models, which nothing ends."""

    def __call__(self, argv: list[str] | None = None) -> int:
        status = super().__call__(argv)
        if ABANDONED.is_set():
            os._exit(status)
        return status


main = _Server(ServerFlags, _serve, __doc__)
