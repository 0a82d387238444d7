"""English constituency parsing (section 6.3): a sentence's words in, its tree out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.data.metadata import Metadata
from t2t_revival.errors import T2TError
from t2t_revival.files import text_lines, writing
from t2t_revival.problems.problem import (
    DEV,
    SAMPLE_VOCAB_SIZE,
    TEST,
    TRAIN,
    Finished,
    Text2TextProblem,
)

if TYPE_CHECKING:
    from t2t_revival.data.generation import Progress
    from t2t_revival.data.sources import Source
    from t2t_revival.parsing.treebank import TreebankSource

VOCAB_SIZES = ((10_000, 4_000), (30_000, 8_000))  # below so many training trees: that many pieces


@registry.register_problem
class ParseWsj(Text2TextProblem):
    """English parsing; by a Penn Treebank folder, of which sections 02-21 of the WSJ are learned."""

    source_lang, target_lang = "words", "trees"
    default_source = ""
    converts = True
    usual_hparams = ("tiny", "parsing_small", "parsing")

    @property
    def approx_vocab_size(self) -> int:
        """Section 6.3: 16,000 pieces where only the WSJ is learned."""
        return 16_000

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

    def default_vocab_size(self, data_source: Source) -> int:
        """See `Text2TextProblem.default_vocab_size`."""
        if data_source.kind == "sample":
            return SAMPLE_VOCAB_SIZE
        trees = data_source.count(TRAIN)
        return next((size for below, size in VOCAB_SIZES if trees < below), self.approx_vocab_size)

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """The tokens of linearised trees."""
        from t2t_revival.parsing.symbols import symbols
        from t2t_revival.parsing.treebank import TreebankSource

        assert isinstance(data_source, TreebankSource)
        return symbols(data_source.labels())

    def generate_data(
        self, data_dir: str | Path, tmp_dir: str | Path | None = None, progress: Progress | None = None
    ) -> Metadata:
        """See `Problem.generate_data`; beside the shards, the trees of dev and test as they are measured."""
        from t2t_revival.parsing.trees import bracketing

        metadata = super().generate_data(data_dir, tmp_dir, progress)
        source = self.make_source(metadata.source, None)
        for split in (TEST, DEV):
            path = self.trees_path(split, data_dir)
            if split not in metadata.splits or path.exists():
                continue
            with writing(path) as file:
                file.writelines(f"{bracketing(tree)}\n".encode() for tree in source.trees(split))
        return metadata

    def has_data(self, data_dir: str | Path) -> bool:
        """See `Problem.has_data`."""
        return super().has_data(data_dir) and self.trees_path(DEV, data_dir).is_file()

    def trees_path(self, split: str, data_dir: str | Path) -> Path:
        """The file of a split's trees, one per line."""
        return Path(data_dir).expanduser() / f"{self.dataset_filename()}-{split}.trees"

    def references(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        """Sentences and their trees as the treebank has them, tags included."""
        from t2t_revival.parsing.linear import sentence
        from t2t_revival.parsing.trees import parse

        path = self.trees_path(split, data_dir)
        if not path.is_file():
            raise T2TError(
                f"{path}: no such file: only dev and test can be measured; or run t2t-datagen again"
            )
        for line in text_lines(path.read_bytes(), str(path)):
            yield sentence(parse(line, str(path))), line

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
        settings: see `Problem`.
    """

    def __init__(
        self,
        data_source: str | None = None,
        auto_trees: Sequence[str] = (),
        gold_share: float = 0.0,
        **settings: Any,
    ) -> None:
        from t2t_revival.parsing.treebank import mixed_name

        if auto_trees:
            if not data_source:
                raise T2TError("--auto_trees needs --data_source, the treebank")
            data_source = mixed_name(data_source, auto_trees, gold_share)
        super().__init__(data_source, **settings)

    @property
    def approx_vocab_size(self) -> int:
        """Section 6.3: 32,000 pieces."""
        return 32_000

    def make_source(self, data_source: str, tmp_dir: Path | None) -> TreebankSource:
        """See `Text2TextProblem.make_source`."""
        from t2t_revival.parsing.treebank import mixed

        return mixed(data_source)
