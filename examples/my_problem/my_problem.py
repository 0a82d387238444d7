"""A problem of your own: from dates as people write them to dates as people say them.

Most packages need these three parts: a source, which reads your files; a problem, which defines how they are
learned, decoded and measured; and an hparams set. Copy the folder and replace each by your own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from t2t_revival import HParams, Source, T2TError, Text2TextProblem, registry

HELD_OUT = 20  # one of so many pairs goes to dev, and one to test


class PairsFile(Source):
    """A file of pairs, `WRITTEN TAB SPOKEN` on each line; lines that begin with # are comments.

    T2T had `generate_samples` for this. Here it is a class, because shards are made in parallel: each worker
    has a copy, and reads only the pairs of its shard, by their numbers. `t2t_revival.PairsSource` is
    such a class for generators.
    """

    # Not "folder" or "sample", for which vocabulary sizes suitable for translation are chosen.
    kind = "pairs"
    # In a corpus of translations these are "en" and "de"; here they name the sides in messages.
    source_lang, target_lang = "written", "spoken"

    def __init__(self, file: str) -> None:
        # Reads nothing yet: some commands make a source only to compare its name.
        self._data_source = file
        self._path = Path(file).expanduser().resolve()
        # Stored with the data and compared later, from any folder, so that it must be an absolute path.
        self.name = str(self._path)

    def splits(self) -> tuple[str, ...]:
        """Implements `Source.splits`."""
        return tuple(self._pairs)

    def count(self, split: str) -> int:
        """Implements `Source.count`."""
        return len(self._pairs[split])

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """Implements `Source.pairs`."""
        # All pairs are in memory, which is fine up to a million; `FolderSource` reads larger files.
        yield from self._pairs[split][start:stop]

    def files(self) -> list[Path]:
        """Implements `Source.files`, so that t2t-datagen and t2t-trainer notice that the file was edited."""
        return [self._path]

    @cached_property  # `pairs` is called once for each shard
    def _pairs(self) -> dict[str, list[tuple[str, str]]]:
        pairs = self._read()
        # By number, not at random: a corpus that grows at its end keeps its held-out pairs. T2T had
        # `is_generate_per_split = False` and `dataset_splits` for this.
        splits = {
            "train": [pair for number, pair in enumerate(pairs) if number % HELD_OUT > 1],
            "dev": pairs[0::HELD_OUT],
            "test": pairs[1::HELD_OUT],
        }
        if not all(splits.values()):
            raise T2TError(f"{self._path}: too few pairs for train, dev and test: {len(pairs)}")
        return splits

    def _read(self) -> list[tuple[str, str]]:
        # Errors that a user can fix are T2TErrors: the command prints their message without a traceback. It
        # should say what is wrong, where, and what to do.
        if not self._path.is_file():
            raise T2TError(
                f"--data_source={self._data_source}: no such file; run python make_corpus.py > dates.tsv"
            )
        pairs = []
        # Bytes, since those of a string would also be split at characters such as U+2028.
        for number, content in enumerate(self._path.read_bytes().splitlines(), start=1):
            try:
                line = content.decode()
            except UnicodeDecodeError as error:
                raise T2TError(
                    f"{self._path}: line {number} is not UTF-8 text: convert the file to UTF-8"
                ) from error
            if line.startswith("#"):
                continue
            written, tab, spoken = line.partition("\t")
            if not tab:
                raise T2TError(f"{self._path}, line {number}: no tab; expected WRITTEN TAB SPOKEN")
            pairs.append((written, spoken))
        return pairs


# --problem=spoken_dates: the class name in snake_case, as in T2T. The files in data_dir begin with it: after
# a change of the name, the data must be made again.
@registry.register_problem
class SpokenDates(Text2TextProblem):
    """Written dates to spoken ones; --data_source is a file of WRITTEN TAB SPOKEN."""

    source_lang, target_lang = PairsFile.source_lang, PairsFile.target_lang
    # Without this, the default of --data_source would be WMT14.
    default_source = ""
    # The sets that t2t-datagen recommends: for the built-in sample, up to a million pairs, and above.
    usual_hparams = ("spoken_dates_tiny", "spoken_dates_tiny", "spoken_dates_tiny")

    @property  # as in T2T
    def approx_vocab_size(self) -> int:
        """450 pieces: 256 bytes for other characters, the letters, and a hundred words."""
        # T2T's default of 2**15 would be far too large. --vocab_size overrides this.
        return 450

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Makes each digit a piece of its own."""
        # Otherwise there would be pieces such as 19, and a model could not see that they begin with 1.
        return tuple("0123456789")

    def make_source(self, data_source: str, tmp_dir: Path | None) -> PairsFile:
        """Returns the source of a --data_source, which defaults to the one that data_dir was made from."""
        if not data_source:
            raise T2TError("--data_source is missing: give a file with WRITTEN TAB SPOKEN on each line")
        return PairsFile(data_source)

    def decode_hparams(self) -> dict[str, Any]:
        """Greedy search, for outputs at most 20 tokens longer than their inputs."""
        # There is only one right answer, so that neither a beam nor a length penalty helps. These values are
        # stored with the model and used by all later commands; --decode_hparams overrides them.
        return {"beam_size": 1, "alpha": 0.0, "extra_length": 20}

    def eval_metrics(self) -> tuple[str, ...]:
        """The metrics of t2t-eval, and those for early stopping of t2t-trainer."""
        # "bleu" and "chrf" decode dev sentences at each evaluation; the others only measure the prediction of
        # the next token. Perplexity is omitted, since it is a function of the loss.
        return ("loss", "accuracy", "bleu", "chrf")


# --hparams_set=spoken_dates_tiny: the function name. T2T's functions changed a mutable set; here sets are
# immutable, and `replace` returns a changed copy.
@registry.register_hparams
def spoken_dates_tiny() -> HParams:
    """2+2 layers, 64/256, 4 heads, pre-norm: learns to say dates in half a minute on two cores."""
    # T2T's own sets are there too: registry.hparams("transformer_tiny").
    return registry.hparams("tiny").replace(
        # The task is to copy and to look up: a wider model would learn the same, more slowly.
        hidden_size=64,
        filter_size=256,
        # So small a model does not overfit on so many examples.
        layer_prepostprocess_dropout=0.0,
        # Smoothing helps where several outputs are right.
        label_smoothing=0.0,
        # With the usual 4,000, the training would end during warm-up. A shorter warm-up reaches a higher
        # rate, for which the constant compensates.
        learning_rate_warmup_steps=100,
        learning_rate_constant=0.5,
        # Tokens, not examples: about 100 dates.
        batch_size=1024,
        train_steps=600,
    )
