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
PACE = 4000  # tokens a second, of two cores: what fits into minutes, so that no dropout depends on a machine
USUAL = 30_000, 20 * 30_000  # pairs and tokens, where none are known
DECODING = {"alpha": 1.0}  # by which outputs, too short at T2T's 0.6, gain 0.1 to 0.3 BLEU on dev
BATCH_SIZES = ((8_000_000, 2048), (math.inf, 4096))  # for fewer tokens than these, by the pace
DROPOUTS = ((12, 0.1), (40, 0.2), (math.inf, 0.3))  # for fewer epochs than these


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


FITS = (Fit(10_000, 2000, 300), Fit(60_000, 4000, 150), Fit(1_000_000, 8000, 30))


def vocab_sizes(usual: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Returns pieces under exclusive bounds of pairs; for corpora larger than those here, the usual ones."""
    own = tuple((fit.pairs, fit.pieces) for fit in FITS)
    return own + tuple(size for size in usual if size[0] > own[-1][0])


def fitted(pairs: int, tokens: int, minutes: float = MINUTES, updates: int = 0) -> HParams:
    """Returns the set for a corpus; its `train_steps` are those after which scores rise no more.

    Args:
        pairs: of the corpus.
        tokens: of the longer sides of its pairs.
        minutes: of the training; they decide with the tokens how much dropout there is, and how many updates.
        updates: of the training, where they are given instead.
    """
    fit = next((fit for fit in FITS if pairs < fit.pairs), FITS[-1])
    hparams = small()
    seen = updates * hparams.batch_size or 60 * minutes * PACE
    batch_size = next(size for most, size in BATCH_SIZES if seen < most)
    seen = updates * batch_size or seen
    hparams = hparams.replace(
        batch_size=batch_size,
        pos="rotary",
        optimizer="muon",
        learning_rate_schedule="constant*linear_warmup*single_cycle_cos_decay",
        learning_rate_constant=0.003,
        learning_rate_warmup_steps=600,
        attention_dropout=0.1,
        relu_dropout=0.1,
        layer_prepostprocess_dropout=next(rate for epochs, rate in DROPOUTS if seen < epochs * tokens),
    )
    return hparams.of_length(max(1000, fit.epochs * tokens // hparams.batch_size), falls=True)


@registration.register_hparams
def auto() -> HParams:
    """Settings by the number of pairs, t2t-trainer's without --hparams_set; here those for 30,000."""
    return fitted(*USUAL)
