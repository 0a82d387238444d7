"""English constituency parsing (section 6.3): a sentence's words in, its tree out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.data.generation import references_path
from t2t_revival.errors import T2TError
from t2t_revival.files import text_lines
from t2t_revival.hints import remake_command
from t2t_revival.problems.problem import TRAIN, Finished, Text2TextProblem

if TYPE_CHECKING:
    from t2t_revival.data.sources import Source
    from t2t_revival.parsing.treebank import TreebankSource

VOCAB_SIZES = ((10_000, 4_000), (30_000, 8_000))  # below so many training trees: that many pieces


@registry.register_problem
class ParseWsj(Text2TextProblem):
    """English parsing; by a Penn Treebank folder, of which sections 02-21 of the WSJ are learned."""

    source_lang, target_lang = "words", "trees"
    default_source = ""
    separates_words = True
    usual_hparams = ("tiny", "parsing_small", "parsing")
    large_vocab_size = 16_000  # section 6.3, where only the WSJ is learned
    folder_vocab_sizes = VOCAB_SIZES

    def decode_hparams(self) -> dict[str, Any]:
        """Section 6.3: beam 21, alpha 0.3, length of the input + 300."""
        return {"beam_size": 21, "alpha": 0.3, "extra_length": 300, "constrained": True}

    def eval_metrics(self) -> tuple[str, ...]:
        """Loss, perplexity and accuracy per token, and F1 of real decoding."""
        return ("loss", "perplexity", "accuracy", "f1")

    def make_source(self, data_source: str, tmp_dir: Path | None) -> TreebankSource:
        """See `Text2TextProblem.make_source`."""
        from t2t_revival.parsing.treebank import treebank

        return treebank(data_source)

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """The tokens of linearised trees."""
        from t2t_revival.parsing.symbols import symbols
        from t2t_revival.parsing.treebank import TreebankSource

        assert isinstance(data_source, TreebankSource)
        return symbols(data_source.labels())

    def reference_lines(self, source: Source, split: str) -> Iterator[str]:
        """The trees of dev or test, tags included, one on each line."""
        from t2t_revival.parsing.treebank import TreebankSource
        from t2t_revival.parsing.trees import bracketing

        assert isinstance(source, TreebankSource)
        return map(bracketing, source.trees(split))

    def references(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        """Sentences and their trees as the treebank has them, tags included."""
        from t2t_revival.parsing.linear import sentence
        from t2t_revival.parsing.trees import parse

        self.shards(split, data_dir)
        path = references_path(Path(data_dir).expanduser(), self.dataset_filename(), split)
        if split == TRAIN:
            raise T2TError(f"{self.name}: outputs of dev and test can be measured, not those of train")
        if not path.is_file():
            raise T2TError(f"{path}: no such file: run {remake_command(self.name, path.parent)}")
        for number, line in enumerate(text_lines(path.read_bytes(), str(path)), start=1):
            yield sentence(parse(line, f"{path}, line {number}")), line

    def prepare(self, line: str, tokenized: bool = False) -> str:
        """A sentence's words as treebanks write them, a space between any two."""
        from t2t_revival.parsing.linear import tokens, words

        return " ".join(words(line) if tokenized else tokens(line))

    def finish(self, inputs: str, output: str) -> Finished:
        """The tree in brackets, over the words of the sentence."""
        from t2t_revival.parsing.linear import delinearise, words
        from t2t_revival.parsing.trees import bracketing

        tree, repaired = delinearise(output, words(inputs))
        return Finished(bracketing(tree), repaired)

    def target(self, output: str) -> str:
        """The tokens of a tree in brackets, whatever its words and tags."""
        from t2t_revival.parsing.treebank import pair_of
        from t2t_revival.parsing.trees import parse

        return pair_of(parse(output))[1]

    def drawn(self, output: str, width: int) -> str:
        """A tree as a drawing, or where there are too few columns for that, in indented brackets."""
        from t2t_revival.parsing.drawing import drawn
        from t2t_revival.parsing.trees import parse

        return drawn(parse(output), width) if output else ""


@registry.register_problem
class ParseWsjSemi(ParseWsj):
    """English parsing from a treebank and, mixed with it, sentences that a parser parsed.

    Args:
        data_source: of the treebank.
        auto_trees: files of the parsed sentences.
        gold_share: of the training examples that are the treebank's; 0: each tree comes once.
        vocab_size: see `Problem`.
        tmp_dir: see `Problem`.
        vocab_file: see `Problem`.

    Raises:
        T2TError: of treebank and parsed sentences, one is missing.
    """

    large_vocab_size = 32_000  # section 6.3

    def __init__(
        self,
        data_source: str | None = None,
        auto_trees: Sequence[str] = (),
        gold_share: float = 0.0,
        vocab_size: int = 0,
        tmp_dir: str | Path | None = None,
        vocab_file: str | Path | None = None,
    ) -> None:
        from t2t_revival.parsing.treebank import mixed_name

        if auto_trees:
            if not data_source:
                raise T2TError("--auto_trees needs --data_source, the treebank")
            data_source = mixed_name(data_source, auto_trees, gold_share)
        elif gold_share:
            raise T2TError("--gold_share needs --auto_trees and --data_source")
        super().__init__(data_source, vocab_size, tmp_dir, vocab_file)

    def make_source(self, data_source: str, tmp_dir: Path | None) -> TreebankSource:
        """See `Text2TextProblem.make_source`."""
        from t2t_revival.parsing.treebank import mixed

        return mixed(data_source)
