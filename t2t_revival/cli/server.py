"""`t2t-server`: serves trained models over HTTP."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival.cli.support import command, engine_flags, problem_flags, run_flags, tensorflow_setup
from t2t_revival.cli.support.messages import say, warn_of_corruption
from t2t_revival.decoding.options import CTRANSLATE2, FLOAT32, TENSORFLOW, DecodeHParams
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.server.batching import BatchLimits
from t2t_revival.server.config import ModelConfig, check_name, exported_name, load_config
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.utils.signals import ending_signals, handling

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.server.versions import ServedModel

USAGE = """
t2t-server --output_dir=DIR
t2t-server --saved_model=EXPORT_DIR
t2t-server --config=models.yaml

Serves trained models over HTTP: TensorFlow Serving's REST API under /v1/models, and /translate for plain
texts. The port opens at once; models are loaded then, requests wait for theirs, and /readyz tells when all
answer. An export_dir is watched: new versions take over without a pause. Ctrl-C, SIGTERM or SIGHUP ends the
server when the requests that it has are answered.
"""
NEEDED = ("fastapi", "uvicorn", "prometheus_client")
LOCAL = ("127.0.0.1", "localhost", "::1")
MODELS = ("output_dir", "saved_model", "config")
MEBIBYTE = 2**20


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-server."""
    values = command.new_flags()
    run_flags.define_model(values)
    engine_flags.define(values)
    command.define(
        values,
        None,
        saved_model="Instead of output_dir: an export_dir of t2t-exporter, whose newest version is served.",
        config="Instead of both: a YAML file of several models; docs/guides/server.md has its keys.",
        servable_name="Name of the model in paths; by default the problem's, or that of the export.",
        api_key_file="File of API keys, one a line, one of which each request must have.",
    )
    command.define(values, "127.0.0.1", host="Address to listen at; 0.0.0.0 is all of this machine.")
    command.define(values, [], cors_origins="Web sites whose pages may send requests; by default none.")
    command.define(values, False, access_log="Log each request: address, path and status; never text.")
    timeout = "Seconds that a request waits for its model to be loaded, and seconds for its answer."
    for name, default, lower, upper, text in (
        ("port", 8501, 0, 65535, "Port to listen at; 0 takes a free one."),
        ("batch_size", 32, 1, 4096, "Lines that are translated at once."),
        ("batch_wait_ms", 5, 0, 1000, "Milliseconds, or 5% of a batch's time, that a line waits for others."),
        ("max_queue", 10_000, 1, None, "Lines that may wait; with more, requests get status 503."),
        ("max_lines", 1024, 1, None, "Lines of a request."),
        ("max_beam_size", 16, 1, 100, "Largest beam_size of a request."),
        ("max_body_mib", 4, 1, 1024, "Largest body of a request, in MiB."),
        ("timeout_secs", 60, 1, 86_400, timeout),
    ):
        command.define_integer(name, default, text, lower_bound=lower, upper_bound=upper, flag_values=values)
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    abandoned = threading.Event()
    status = command.run(command_flags(), USAGE, partial(_serve, abandoned), argv)
    if abandoned.is_set():  # nothing ends the thread that loads models, and Python would wait for it
        os._exit(status)
    return status


def _serve(abandoned: threading.Event, values: flags.FlagValues) -> None:
    """Serves models; `abandoned` is set if the server ends while they are loaded."""
    _check_flags(values)
    configs, keys = _configs(values), _api_keys(values)
    with _listen(values.host, values.port) as listener, ExitStack() as stack:
        models = [_served(config, values, stack) for config in configs]
        _run(values, listener, models, keys, abandoned)


def _check_flags(values: flags.FlagValues) -> None:
    """Rejects missing packages, and flags that are missing or have no effect beside others."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise T2TError(
            f"the package {missing[0]} is not installed: pip install fastapi uvicorn prometheus-client"
        )
    given = [name for name in MODELS if values[name].present]
    if len(given) > 1:
        raise T2TError(f"--{given[0]} and --{given[1]} cannot be combined: give one of them")
    for name in ("hparams_set", "checkpoint", "engine", "precision"):
        if given not in ([], ["output_dir"]) and values[name].present:
            raise T2TError(f"--{name} has no effect with --{given[0]}")
    for name in ("servable_name", "problem"):
        if given == ["config"] and values[name].value:
            raise T2TError(f"--{name} has no effect with --config, whose models have their own")
    if values.max_queue < values.max_lines:
        raise T2TError(f"--max_queue={values.max_queue} must be at least --max_lines={values.max_lines}")


def _configs(values: flags.FlagValues) -> list[ModelConfig]:
    """The models that the flags name."""
    if values.config:
        return load_config(Path(values.config).expanduser())
    if values.saved_model:
        folder = Path(values.saved_model).expanduser()
        name = check_name(values.servable_name or exported_name(folder))
        return [ModelConfig(name, saved_model=folder, problem=values.problem)]
    folder, run = run_flags.open_run(values)
    name = check_name(values.servable_name or run.problem)
    engine = {"engine": values.engine, "precision": values.precision}
    return [ModelConfig(name, output_dir=folder, checkpoint=values.checkpoint, **engine)]


def _api_keys(values: flags.FlagValues) -> list[str]:
    if not values.api_key_file:
        return []
    try:
        text = Path(values.api_key_file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise T2TError(f"--api_key_file={values.api_key_file}: {reason}") from error
    keys = [line.strip() for line in text.splitlines() if line.strip()]
    if not keys:
        raise T2TError(f"--api_key_file={values.api_key_file}: no key; write one on each line")
    return keys


def _listen(host: str, port: int) -> socket.socket:
    """Opens the port."""
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


def _served(config: ModelConfig, values: flags.FlagValues, stack: ExitStack) -> ServedModel:
    """Returns a model that is loaded later; `stack` removes what an interrupted export leaves.

    Raises:
        T2TError: there is no such model.
    """
    from t2t_revival.server.versions import ServedModel

    if config.saved_model:
        problem = problem_flags.text_problem(values, config.problem) if config.problem else None
        served = ServedModel(
            config.name, config.saved_model, config.labels, config.keep, say, problem=problem
        )
        if served.nothing_found:
            raise T2TError(f"{config.name}: {served.nothing_found}")
        return served
    _decode_options(config)
    return ServedModel(config.name, None, say=say, prepare=partial(_prepare, config, stack))


def _prepare(config: ModelConfig, stack: ExitStack, served: ServedModel) -> None:
    """Loads the checkpoint of an output_dir, and serves it with the number of its step."""
    from t2t_revival.server.inspection import Inspector
    from t2t_revival.serving.translator_model import TranslatorModel

    assert config.output_dir
    translator = _translator(config)
    assert translator.checkpoint
    say(f"{config.name}: {translator.checkpoint.path}")
    served.problem, step = translator.problem, translator.checkpoint.step
    if config.engine == CTRANSLATE2:
        path = str(translator.checkpoint.path)
        shown = _translator(replace(config, engine=TENSORFLOW, precision=FLOAT32, checkpoint=path))
        served.inspector = Inspector(shown, ModelFolder(config.output_dir))
        served.serve(step, TranslatorModel(translator), str(translator.engine))
        return
    served.inspector = Inspector(translator, ModelFolder(config.output_dir))
    served.serve(step, _exported(translator, config, stack))


def _exported(translator: Translator, config: ModelConfig, stack: ExitStack) -> FolderModel:
    """Exports a model, and loads it from there into memory."""
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.serving.export import export

    assert config.output_dir
    heads = AlignmentHeads.find(config.output_dir, translator.model.hparams)
    made = tempfile.TemporaryDirectory(prefix="t2t-server-", ignore_cleanup_errors=True)
    stack.callback(made.cleanup)
    with made as folder:
        return FolderModel(export(translator, Path(folder), config.name, heads=heads))


def _decode_options(config: ModelConfig) -> DecodeHParams:
    """The settings of an output_dir's decoding; raises T2TError if an export cannot have them."""
    assert config.output_dir
    options = DecodeHParams.parse("", ModelFolder(config.output_dir).run.decode_hparams)
    options.check_served()
    return options


def _translator(config: ModelConfig) -> Translator:
    """Loads the checkpoint of an output_dir."""
    from t2t_revival.decoding.translator import Translator

    assert config.output_dir
    return Translator.load(
        config.output_dir,
        config.checkpoint,
        _decode_options(config),
        tensorflow_setup.num_parallel_batches(),
        config.precision,
        constant_weights=False,
        on_damaged=warn_of_corruption,
        engine=config.engine,
        on_note=say,
    )


def _run(
    values: flags.FlagValues,
    listener: socket.socket,
    models: list[ServedModel],
    keys: list[str],
    abandoned: threading.Event,
) -> None:
    """Serves until SIGINT, SIGTERM or SIGHUP, or until a model cannot be loaded."""
    import uvicorn

    from t2t_revival.server.app import create_app
    from t2t_revival.server.service import Limits, Start

    host, port = listener.getsockname()[:2]
    address = f"http://{'localhost' if host in LOCAL else host}:{port}"
    loaded: list[Exception | None] = []
    asked: list[int] = []  # signals

    def leave(number: int, _: FrameType | None) -> None:
        asked.append(number)
        server.should_exit = True

    def begin() -> int:
        tensorflow_setup.load_tensorflow(values)
        return tensorflow_setup.num_parallel_batches()

    def end(fault: Exception | None) -> None:
        loaded.append(fault)
        if fault:
            server.should_exit = True
            return
        say(f"serving at {address}; Ctrl-C ends it")
        say(f"next: {CommandLine('t2t-query-server', server=address, servable_name=models[0].name)}")

    limits = Limits(values.max_lines, max_beam_size=values.max_beam_size, timeout=values.timeout_secs)
    batches = BatchLimits(
        values.batch_size,
        max_wait=values.batch_wait_ms / 1000,
        max_queue=values.max_queue,
    )
    app = create_app(
        {model.name: model for model in models},
        limits,
        batches,
        max_body=values.max_body_mib * MEBIBYTE,
        api_keys=keys,
        cors_origins=values.cors_origins,
        start=Start(begin, end, lambda: server.should_exit),
    )
    config = uvicorn.Config(
        app,
        log_level="info" if values.access_log else "warning",
        access_log=values.access_log,
        timeout_graceful_shutdown=values.timeout_secs,
        server_header=False,
    )
    server = uvicorn.Server(config)
    # uvicorn handles signals only while it runs, SIGHUP not at all, and at its end raises them again.
    with handling(dict.fromkeys(ending_signals(), leave)):
        listener.listen()
        say(f"listening at {address}; loading {len(models)} model{'s' * (len(models) > 1)}")
        server.run(sockets=[listener])
    if asked and not loaded:
        abandoned.set()
        signal.raise_signal(asked[0])
    if loaded and loaded[0]:
        raise loaded[0]
    say("ended: all requests are answered")


if __name__ == "__main__":
    sys.exit(main())
