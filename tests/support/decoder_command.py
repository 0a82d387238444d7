"""t2t-decoder, called by tests in their own process."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from t2t_revival import model
from t2t_revival.cli import decoder
from t2t_revival.decoding import tensorflow_engine
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.model import Transformer
from tests.support.command_lines import last_of_each

DECODE = "beam_size=2,extra_length=3"


def run(*arguments):
    return decoder.main(last_of_each(["t2t-decoder", *map(str, arguments)]))


def decode(out, *arguments):
    return run(f"--output_dir={out}", f"--decode_hparams={DECODE}", *arguments)


@contextmanager
def shared_search() -> Iterator[None]:
    """Lends one model and its search to all decoders in the block, each of which loads its weights into it.

    The search, which takes a second to compile, reads the weights at each call.
    """

    @functools.cache
    def search(model, constant_weights, *how):
        return BeamSearch(model, False, *how)

    shared_model = mock.patch.object(model, "Transformer", functools.cache(Transformer))
    with shared_model, mock.patch.object(tensorflow_engine, "BeamSearch", search):
        yield


def refused(capsys, status, *parts):
    """Checks that a command ended with one line of error and nothing else."""
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    (line,) = [line for line in captured.err.splitlines() if not line.startswith("decoding with")]
    assert line.startswith("t2t-decoder: error: ")
    for part in parts:
        assert str(part) in line
