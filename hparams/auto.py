"""The set `auto`, which `t2t-trainer` takes without `--hparams_set`: what fits the number of pairs.

benchmarks/lab_notes/small_corpora.md has the trainings by which it was chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from t2t_revival import registration
from t2t_revival.hparams.base import small
from t2t_revival.hparams.hparams import HParams

AUTO = "auto"
MINUTES = 30.0  # of a training whose length nobody gives
EVAL_FREQUENCY = 500  # updates between evaluations: some 4 minutes of half an hour
PACE = 60 * 4000  # target tokens a minute, of two cores with bfloat16: until a training has measured its own
USUAL = 30_000, 20 * 30_000  # pairs and tokens, where none are known
DECODING = {"alpha": 1.0}  # by which outputs, too short at T2T's 0.6, gain 0.1 to 0.3 BLEU on dev
DROPOUTS = ((5, 0.0), (12, 0.1), (40, 0.2), (math.inf, 0.3))  # for fewer epochs than these


@dataclass(frozen=True)
class Fit:
    """The settings that fit corpora of one size.

    Attributes:
        pairs: exclusive bound of the size.
        pieces: of the vocabulary.
        epochs: after which scores on dev rise no more.
    """

    pairs: int
    pieces: int
    epochs: int


@dataclass(frozen=True)
class Size:
    """The sizes of model and batches that fit trainings of one length.

    Attributes:
        tokens: exclusive bound of the target tokens that 256/1024 reads in that time.
        channels: hidden_size, a quarter of filter_size.
        batch_size: tokens.
    """

    tokens: float
    channels: int
    batch_size: int

    @property
    def speed(self) -> float:
        """The tokens that it reads, as a multiple of those of 256/1024."""
        return (256 / self.channels) ** 2


FITS = (Fit(10_000, 2000, 300), Fit(60_000, 4000, 150), Fit(1_000_000, 8000, 30))
SIZES = (Size(2_000_000, 128, 2048), Size(8_000_000, 256, 2048), Size(math.inf, 256, 4096))


def vocab_sizes(usual: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Returns pieces under exclusive bounds of pairs; for corpora larger than those here, the usual ones."""
    own = tuple((fit.pairs, fit.pieces) for fit in FITS)
    return own + tuple(size for size in usual if size[0] > own[-1][0])


def fitted(pairs: int, tokens: int, read: float = MINUTES * PACE, updates: int = 0) -> HParams:
    """Returns the set for a corpus; its `train_steps` are those after which scores rise no more.

    Args:
        pairs: of the corpus.
        tokens: of the longer sides of its pairs.
        read: target tokens that 256/1024 reads in the time; they decide about sizes, batches and dropout.
        updates: of the training, where they are given instead.
    """
    fit = next((fit for fit in FITS if pairs < fit.pairs), FITS[-1])
    sizes = [size for size in SIZES if not updates or size.speed == 1]
    size = next(size for size in sizes if (updates * SIZES[-1].batch_size or read) < size.tokens)
    seen = updates * size.batch_size or read * size.speed
    dropout = next(rate for epochs, rate in DROPOUTS if seen < epochs * tokens)
    hparams = small().replace(
        hidden_size=size.channels,
        filter_size=4 * size.channels,
        batch_size=size.batch_size,
        pos="rotary",
        optimizer="muon",
        learning_rate_schedule="constant*linear_warmup*single_cycle_cos_decay",
        learning_rate_constant=0.003,
        learning_rate_warmup_steps=600,
        attention_dropout=min(dropout, 0.1),
        relu_dropout=min(dropout, 0.1),
        layer_prepostprocess_dropout=dropout,
    )
    return hparams.of_length(max(1000, fit.epochs * tokens // hparams.batch_size), falls=True)


def by_usual_size(tokens: int, channels: int) -> float:
    """Returns the tokens that 256/1024 reads in the time in which a model of some channels reads `tokens`."""
    return tokens / next((size.speed for size in SIZES if size.channels == channels), 1)


@registration.register_hparams
def auto() -> HParams:
    """Settings by the number of pairs, t2t-trainer's without --hparams_set; here those for 30,000."""
    return fitted(*USUAL)
