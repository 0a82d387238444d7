"""A problem of your own: dates as people write them come in, and go out as people say them.

Three parts, as most packages need them: a source, which reads your files; a problem, which says what is
learned and how it is decoded and measured; an hparams set. Copy the folder and put your own into each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from t2t_revival import registry
from t2t_revival.data.sources import Source
from t2t_revival.errors import T2TError
from t2t_revival.files import text_lines
from t2t_revival.hparams import HParams
from t2t_revival.problems import Text2TextProblem

HELD_OUT = 20  # of so many pairs, one is for dev and one for test


class PairsFile(Source):
    """A file of pairs, `WRITTEN TAB SPOKEN` on each line; a line that begins with # is a comment.

    T2T had `generate_samples` for this. Here it is a class, because shards are made side by side: each worker
    has a copy, and asks for the pairs of its shard only, by their numbers. `t2t_revival.problems.PairsSource`
    is such a class for generators.
    """

    # Not "folder" or "sample": for these, a vocabulary size is chosen that is meant for languages.
    kind = "pairs"
    # In a corpus of translations these are "en" and "de"; here they just name the sides in messages.
    source_lang, target_lang = "written", "spoken"

    def __init__(self, file: str) -> None:
        # Nothing is read yet: commands that only compare names make a source too.
        self._asked = file
        self._path = Path(file).expanduser().resolve()
        # Kept with the data and compared later on, from whatever folder, so that it has to be the whole path.
        self.name = str(self._path)

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return tuple(self._pairs)

    def count(self, split: str) -> int:
        """See `Source.count`."""
        return len(self._pairs[split])

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """See `Source.pairs`."""
        # All is in memory, which does for a million pairs; `FolderSource` shows how to do without.
        yield from self._pairs[split][start:stop]

    @cached_property  # since `pairs` is called once for each shard
    def _pairs(self) -> dict[str, list[tuple[str, str]]]:
        pairs = self._read()
        # By number, not by chance: a corpus that grows at its end keeps what it holds out. T2T had
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
        # Whatever a user can mend is a T2TError: it ends a command with that one line and without a
        # traceback, so that the line should name the file, the place and the way out.
        if not self._path.is_file():
            raise T2TError(
                f"--data_source={self._asked}: no such file; make one by python make_corpus.py > dates.tsv"
            )
        pairs = []
        # Not `str.splitlines`, which cuts at more than line feeds; and this names a line that is not UTF-8.
        for number, line in enumerate(text_lines(self._path.read_bytes(), str(self._path)), start=1):
            if line.startswith("#"):
                continue
            written, tab, spoken = line.partition("\t")
            if not tab:
                raise T2TError(f"{self._path}, line {number}: no tab; expected WRITTEN TAB SPOKEN")
            pairs.append((written, spoken))
        return pairs


# --problem=spoken_dates: the class's name in snake_case, as in T2T. The files in data_dir begin with it, so
# that a class that gets another name needs its data made again.
@registry.register_problem
class SpokenDates(Text2TextProblem):
    """Written dates to spoken ones; --data_source is a file of WRITTEN TAB SPOKEN."""

    source_lang, target_lang = PairsFile.source_lang, PairsFile.target_lang
    # Otherwise it would be WMT14, where no --data_source is given.
    default_source = ""
    # What t2t-datagen proposes to train with: for the built-in sample, up to and from a million pairs.
    usual_hparams = ("spoken_dates_tiny", "spoken_dates_tiny", "spoken_dates_tiny")

    @property  # as in T2T
    def approx_vocab_size(self) -> int:
        """450 pieces: 256 bytes for what has no piece, the letters, and a hundred words."""
        # T2T's 2**15 would be far more than there are words. --vocab_size goes before this.
        return 450

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Digits are pieces by themselves."""
        # Left alone, a vocabulary gets pieces such as 19, and a model cannot see that they begin with 1.
        return tuple("0123456789")

    def make_source(self, data_source: str, tmp_dir: Path | None) -> PairsFile:
        """What --data_source means; where it is not given, what data_dir was made from."""
        if not data_source:
            raise T2TError("--data_source is missing: a file with WRITTEN TAB SPOKEN on each line")
        return PairsFile(data_source)

    def decode_hparams(self) -> dict[str, Any]:
        """Greedy search, for outputs that are at most 20 tokens longer than their inputs."""
        # There is one right answer, so that nothing is gained by a beam, nor by a length penalty. The model
        # keeps this, and every later command decodes so; --decode_hparams goes before it.
        return {"beam_size": 1, "alpha": 0.0, "extra_length": 20}

    def eval_metrics(self) -> tuple[str, ...]:
        """What t2t-eval shows, and what t2t-trainer can stop early by."""
        # "bleu" has dev sentences decoded for real at each evaluation, where the others only look at the next
        # token. Perplexity is left out, which says no more than the loss.
        return ("loss", "accuracy", "bleu")


# --hparams_set=spoken_dates_tiny: the function's name. T2T's functions changed the set that they got; here
# sets cannot be changed, and `replace` makes another one.
@registry.register_hparams
def spoken_dates_tiny() -> HParams:
    """2+2 layers, 64/256, 4 heads, pre-norm: learns to say dates in half a minute on two cores."""
    # T2T's own sets are there too: registry.hparams("transformer_tiny").
    return registry.hparams("tiny").replace(
        # Saying a date is copying and looking up: a wider model would learn the same and take longer.
        hidden_size=64,
        filter_size=256,
        # So small a model cannot learn so many examples by heart, which is what dropout is against.
        layer_prepostprocess_dropout=0.0,
        # Smoothing is for when several outputs are right.
        label_smoothing=0.0,
        # With the usual 4,000, 600 updates would be over in the warm-up. Shorter, it leads to a higher rate,
        # which the constant makes up for.
        learning_rate_warmup_steps=100,
        learning_rate_constant=0.5,
        # Tokens, not examples: about 100 dates.
        batch_size=1024,
        train_steps=600,
    )
