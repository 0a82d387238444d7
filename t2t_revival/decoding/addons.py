"""Add-ons of decoding: the protocols by which it knows them, and the names by which it finds them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding.outputs import Translation

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from t2t_revival.checkpoints.directory import Checkpoint
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.hparams import HParams

PLACES = {  # modules of t2t_revival.addons, and what is there, by name
    "align_heads": ("head_choice", "HeadChoice"),  # .plan: folder, problem, data_dir -> HeadChoice
    "choose": ("choose", "by_expected_utility"),  # candidates, measure, language
    "coverage": ("choose", "CoveragePenalty"),  # attend, weight
    "constraints": ("lexical.constraints", "constraints_of"),  # constraints, lines, first line -> by index
    "constrained_search": ("lexical.constrained_lines", "ConstrainedLines"),  # -> ConstrainedSearch
    "check_terms": ("lexical.term_check", "TermCheck"),  # -> TermCheck
    "spelling": ("lexical.phrases", "Spelling"),  # of a vocabulary, for the tables of a search
    "grow_with_tables": ("lexical.search", "grow_lexical"),  # as `beam_search.grow`
    "start_tables": ("lexical.search", "initial_state"),  # of the tables of a search
    "pack_tables": ("lexical.tables", "pack"),  # a text for each sentence
    "unpack_tables": ("lexical.packed_tables", "unpack"),
    "no_tables": ("lexical.tables", "NO_PHRASES"),
    "ctranslate2_engine": ("ctranslate2.engine", "CTranslate2Engine"),  # an Engine, of a ConvertedModel
    "ctranslate2_model": ("ctranslate2.engine", "CTranslate2Model"),  # -> ConvertedModel
    "hub_model": ("imports.hub", "imported"),  # name -> output_dir
    "markup": ("markup.translation", "MarkedLines"),  # lines, kind, tags -> MarkedLines
    "markup_faults": ("markup.plain", "describe_faults"),  # lines, kind, first line
    "shortlist": ("shortlist", "Translations"),  # .load: folder, fingerprint -> Shortlist
}
HUB = "hf:"  # begins the names of models of the Hugging Face Hub
Outputs = Mapping[int, list[Translation]]  # by index of the input
Found = tuple[list[list[int]], list[float]]  # ids and scores of the outputs of an input


def addon(name: str) -> Any:
    """Returns a part of an add-on, by its name in `PLACES`; only then is the add-on imported."""
    module, attribute = PLACES[name]
    return getattr(import_module(f"t2t_revival.addons.{module}"), attribute)


class ConvertedModel(Protocol):
    """A model that another library computes, with the hyperparameters of the trained one."""

    hparams: HParams

    def load_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Loads a checkpoint, converted."""


class Attempt(NamedTuple):
    """A search for the outputs of some inputs.

    Attributes:
        indices: of the inputs.
        ids: their tokens.
        tables: of what their outputs must have and must not have.
    """

    indices: list[int]
    ids: list[list[int]]
    tables: Any


class Constraints(Protocol):
    """Phrases that the outputs of a line must have, and others that they must not have."""

    @property
    def terms(self) -> Collection[Any]:
        """Phrases that translate terms of the line."""

    def missing(self, text: str) -> tuple[str, ...]:
        """Returns what an output lacks."""

    def present(self, text: str) -> tuple[str, ...]:
        """Returns what an output has and should not have."""


class ConstrainedSearch(Protocol):
    """The search of a request's inputs with constraints."""

    def __contains__(self, index: int) -> bool:
        """Returns whether an input has constraints."""

    async def search(self, indices: Iterable[int]) -> dict[int, Found]:
        """Returns what is found of the inputs with constraints, by index."""

    async def search_again(self, constraints: Mapping[int, Constraints]) -> dict[int, Found]:
        """Returns what is found of inputs with other constraints, if they can have them."""


class TermCheck(Protocol):
    """A check whether terms in outputs translate their words."""

    @property
    def lines(self) -> Collection[int]:
        """Lines with terms, by index."""

    async def __call__(
        self,
        outputs: Outputs,
        free: Callable[[list[int]], Awaitable[Outputs]],
        forced: Callable[[Mapping[int, Constraints]], Awaitable[Outputs]],
    ) -> Outputs:
        """Returns the outputs of the lines with terms, or better ones of another search."""


class MarkedLines(Protocol):
    """Lines without their markup."""

    @property
    def texts(self) -> list[str]:
        """The lines to translate."""

    async def put_back(
        self,
        lines: range,
        outputs: Sequence[Translation],
        align: Callable[[list[tuple[str, str]]], Awaitable[Sequence[Sequence[Link]]]],
    ) -> list[Translation]:
        """Returns the outputs of some lines with their markup."""


class HeadChoice(Protocol):
    """A choice of the heads that align words, which is still to be made."""

    def make(self, translator: Any, is_given: bool, on_note: Callable[[str], None]) -> AlignmentHeads:
        """Chooses heads of a `Translator`; stores those of a checkpoint whose file is not given."""


class Shortlist(Protocol):
    """The tokens that may be in an output, by those of its input; see `Translations`."""

    @property
    def best(self) -> np.ndarray:
        """Target pieces of each source piece, best first, padded with 0; int32 [source vocab, best]."""

    @property
    def frequent(self) -> np.ndarray:
        """Target pieces that all shortlists have; int32 [frequent]."""

    @property
    def digest(self) -> str:
        """First 16 digits of a SHA-256."""

    def data_warning(self, output_dir: Path, trained_on: str) -> str:
        """Returns a warning that it was learned from other data; empty if not."""
