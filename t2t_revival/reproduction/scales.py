"""How large a reproduction is: the paper's own sizes, or sizes that two CPU cores train in minutes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from t2t_revival.hparams import HParams


@dataclass(frozen=True)
class Scale:
    """A scale of reproduction.

    Attributes:
        name: for `--scale`.
        about: one sentence for people.
        data_source: of translation, where none is given; None: one must be given.
        vocab_size: pieces of the vocabulary of translation; 0: as the problem chooses.
        adapted: a set of the paper -> the set that is trained.
        checkpoints: evenly spread over a training; 0: by the clock, each ten minutes, as in the paper.
        parsing: hparams sets of table 4, from the treebank alone and from parsed text as well.
        parsing_hparams: changes to them, as `--hparams` takes them.
        parsing_beam: beam of table 4.
    """

    name: str
    about: str
    data_source: str | None
    vocab_size: int
    adapted: Callable[[HParams], HParams]
    checkpoints: int
    parsing: tuple[str, str]
    parsing_hparams: str
    parsing_beam: int

    def overrides(self, hparams: HParams) -> str:
        """What the trained set changes of a set of the paper, as `--hparams` takes it."""
        adapted = dataclasses.asdict(self.adapted(hparams))
        return ",".join(
            f"{name}={adapted[name]}"
            for name, value in dataclasses.asdict(hparams).items()
            if value != adapted[name]
        )


def _as_it_is(hparams: HParams) -> HParams:
    return hparams


def _for_two_cores(hparams: HParams) -> HParams:
    """Half the layers, a quarter of the width, as many heads, a sixtieth of the updates.

    Pre-norm: after so few updates a post-norm model has hardly begun, and deeper ones have not.
    """
    return hparams.replace(
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        num_hidden_layers=hparams.num_hidden_layers // 2,
        hidden_size=hparams.hidden_size // 4,
        filter_size=hparams.filter_size // 4,
        attention_key_channels=hparams.attention_key_channels // 4,
        train_steps=hparams.train_steps // 60,
        learning_rate_warmup_steps=400,
        batch_size=2048,
        effective_batch_size=0,
    )


PAPER = Scale(
    name="paper",
    about="The paper's own sizes and numbers of updates.",
    data_source="wmt14",
    vocab_size=0,
    adapted=_as_it_is,
    checkpoints=0,
    parsing=("parsing", "parsing_semi"),
    parsing_hparams="",
    parsing_beam=21,
)
CPU = Scale(
    name="cpu",
    about="Half the paper's layers, normalised before each sub-layer, a quarter of its channels, as many "
    "heads, 1/60 of its updates of 2,048 tokens each (not 25,000); 4,400 subwords, so that embeddings have "
    "the paper's share of the parameters.",
    data_source=None,
    vocab_size=4_400,
    adapted=_for_two_cores,
    checkpoints=10,
    parsing=("parsing_small", "parsing_small"),
    parsing_hparams="train_steps=4000",
    parsing_beam=4,
)
SCALES = {scale.name: scale for scale in (PAPER, CPU)}
