"""t2t-decoder, called by tests in their own process."""

from t2t_revival.cli import decoder
from tests.support.command_lines import last_of_each

DECODE = "beam_size=2,extra_length=3"


def run(*arguments):
    return decoder.main(last_of_each(["t2t-decoder", *map(str, arguments)]))


def decode(out, *arguments):
    return run(f"--output_dir={out}", f"--decode_hparams={DECODE}", *arguments)
