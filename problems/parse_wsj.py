"""English constituency parsing (section 6.3): a sentence's words in, its tree out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registration
from t2t_revival.data.config import DataConfig
from t2t_revival.parsing.symbols import symbols
from t2t_revival.problems.problem import Finished, Problem
from t2t_revival.utils.extras import require

if TYPE_CHECKING:
    from t2t_revival.data.sources import Source
    from t2t_revival.parsing.treebank import TreebankSource

VOCAB_SIZES = ((10_000, 4_000), (30_000, 8_000))  # (exclusive bound of training trees, pieces)


@registration.register_problem
class ParseWsj(Problem):
    """English parsing, from a Penn Treebank folder: sections 02-21 of the WSJ."""

    source_lang, target_lang = "words", "trees"
    default_source = ""
    separates_words = True
    targets_are_text = False
    usual_hparams = ("tiny", "parsing_small", "parsing")
    large_vocab_size = 16_000  # section 6.3, WSJ only
    folder_vocab_sizes = VOCAB_SIZES

    def __init__(self, **settings: Any) -> None:
        require("nltk", f"problem {self.name}")
        super().__init__(**settings)

    def decode_hparams(self) -> dict[str, Any]:
        """Section 6.3: beam 21, alpha 0.3, length of the input + 300."""
        return {"beam_size": 21, "alpha": 0.3, "extra_length": 300, "constrained": True}

    def make_source(self, data_source: str, tmp_dir: Path | None) -> TreebankSource:
        from t2t_revival.parsing.treebank import treebank

        return treebank(data_source)

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Returns the tokens of linearised trees."""
        from t2t_revival.parsing.treebank import TreebankSource

        assert isinstance(data_source, TreebankSource)
        return symbols(data_source.labels())

    def reference_lines(self, source: Source, split: str) -> Iterator[str]:
        """Yields the trees of dev or test with their tags, one per line."""
        from t2t_revival.parsing.treebank import TreebankSource
        from t2t_revival.parsing.trees import bracketing

        assert isinstance(source, TreebankSource)
        return map(bracketing, source.trees(split))

    def preprocess(self, line: str, tokenized: bool = False) -> str:
        """Returns the words of a sentence as treebanks write them, separated by spaces."""
        from t2t_revival.parsing.linear import tokens, words

        return " ".join(words(line) if tokenized else tokens(line))

    def postprocess(self, inputs: str, output: str) -> Finished:
        """Returns the bracketed tree over the words of the sentence."""
        from t2t_revival.parsing.linear import delinearise, words
        from t2t_revival.parsing.trees import bracketing

        tree, repaired = delinearise(output, words(inputs))
        return Finished(bracketing(tree), repaired)

    def encode_target(self, output: str) -> str:
        """Returns the tokens of a bracketed tree."""
        from t2t_revival.parsing.treebank import pair_of
        from t2t_revival.parsing.trees import parse

        return pair_of(parse(output))[1]

    def render(self, output: str, width: int) -> str:
        """Returns a drawing of a tree; as indented brackets if it is too wide."""
        from t2t_revival.parsing.trees import draw_tree, parse

        return draw_tree(parse(output), width) if output else ""


@dataclass(frozen=True)
class MixedTreesConfig(DataConfig):
    """The settings of a treebank, the `data_source`, that is mixed with trees of a parser.

    The three become one `data_source`, which the metadata stores.

    Attributes:
        auto_trees: for parse_wsj_semi: files of automatically parsed sentences, or patterns such as
            'parsed/*.trees'.
        gold_share: for parse_wsj_semi: share of the treebank's trees, which are repeated, in the training
            examples; 0 takes every tree once.

    Raises:
        T2TError: there are parsed sentences without a treebank, or a share without them.
    """

    auto_trees: tuple[str, ...] = ()
    gold_share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.auto_trees and self.data_source:
            from t2t_revival.parsing.treebank import mixture_name  # which imports NLTK

            mixed = mixture_name(self.data_source, self.auto_trees, self.gold_share)
            for setting, value in (("data_source", mixed), ("auto_trees", ()), ("gold_share", 0.0)):
                object.__setattr__(self, setting, value)

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.gold_share and not self.auto_trees:
            yield "--gold_share needs --auto_trees and --data_source"
        if self.auto_trees and not self.data_source:
            yield "--auto_trees needs --data_source, the treebank"


@registration.register_problem
class ParseWsjSemi(ParseWsj):
    """English parsing from a treebank mixed with sentences that another parser has parsed."""

    large_vocab_size = 32_000  # section 6.3
    config_type = MixedTreesConfig

    def make_source(self, data_source: str, tmp_dir: Path | None) -> TreebankSource:
        from t2t_revival.parsing.treebank import MixedTrees

        return MixedTrees.from_name(data_source)
