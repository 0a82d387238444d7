"""Scales of a reproduction: the paper's own sizes, and sizes that two CPU cores train in minutes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from t2t_revival.hparams import HParams


@dataclass(frozen=True)
class Scale:
    """A scale of reproduction."""

    name: str  # value of `--scale`
    description: str  # for the tables
    data_source: str | None  # default source of translation data; with `None`, `--data_source` is required
    vocab_size: int  # subwords of the translation vocabulary; 0 uses the problem's own size
    adapt: Callable[[HParams], HParams]  # maps one of the paper's hparams sets to the one that is trained
    checkpoints: int  # number of them, at equal distances; 0 saves one every ten minutes, as the paper
    parsing: tuple[str, str]  # hparams sets of table 4: WSJ only, and semi-supervised
    parsing_hparams: str  # overrides of these sets, as for `--hparams`
    parsing_beam: int  # beam size of table 4

    def overrides(self, hparams: HParams) -> str:
        """Returns the changes that `adapt` makes to an hparams set, as for `--hparams`."""
        adapted = dataclasses.asdict(self.adapt(hparams))
        return ",".join(
            f"{name}={adapted[name]}"
            for name, value in dataclasses.asdict(hparams).items()
            if value != adapted[name]
        )


def _for_two_cores(hparams: HParams) -> HParams:
    """Returns half the layers, a quarter of the width, all heads, a sixtieth of the updates; pre-norm.

    After so few updates a post-norm model has learned little, and a deep one nothing.
    """
    return hparams.replace(
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        num_hidden_layers=hparams.num_hidden_layers // 2,
        hidden_size=hparams.hidden_size // 4,
        filter_size=hparams.filter_size // 4,
        decoder_filter_size=hparams.decoder_filter_size // 4,
        attention_key_channels=hparams.attention_key_channels // 4,
        train_steps=hparams.train_steps // 60,
        learning_rate_warmup_steps=400,
        batch_size=2048,
        effective_batch_size=0,
    )


PAPER = Scale(
    name="paper",
    description="The paper's own sizes and numbers of updates.",
    data_source="wmt14",
    vocab_size=0,
    adapt=lambda hparams: hparams,
    checkpoints=0,
    parsing=("parsing", "parsing_semi"),
    parsing_hparams="",
    parsing_beam=21,
)
CPU = Scale(
    name="cpu",
    description="Half the paper's layers (pre-norm), a quarter of its channels, as many heads, 1/60 of its "
    "updates, of 2,048 tokens each instead of 25,000; 4,400 subwords, so that embeddings have the paper's "
    "share of the parameters.",
    data_source=None,
    vocab_size=4_400,
    adapt=_for_two_cores,
    checkpoints=10,
    parsing=("parsing_small", "parsing_small"),
    parsing_hparams="train_steps=4000",
    parsing_beam=4,
)
SCALES = {scale.name: scale for scale in (PAPER, CPU)}
