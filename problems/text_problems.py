"""`Text2TextProblem`: problems with lines of text on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.data.sources import Source, source
from t2t_revival.errors import T2TError
from t2t_revival.problems.generated_problem import GeneratedProblem
from t2t_revival.utils.source_code import place_of

if TYPE_CHECKING:
    import tensorflow as tf

SAMPLE_VOCAB_SIZE = 1000
FOLDER_VOCAB_SIZES = ((500_000, 8_000), (2_000_000, 16_000))  # (exclusive bound of pairs, pieces)
VOCAB_SIZE = 32_000  # T2T's 2**15, rounded


class Finished(NamedTuple):
    """An output for the user, and whether the model's output had to be repaired."""

    text: str
    repaired: bool = False


class Text2TextProblem(GeneratedProblem):
    """Text in, text out; one vocabulary for both, or one for each.

    A subclass sets `source_lang`, `target_lang` and, for a default source, `tfds_default`; for data of
    another kind it overrides `make_source`. If it overrides `approx_vocab_size`, that holds for every source;
    otherwise large corpora get `large_vocab_size`, and smaller ones smaller vocabularies.

    Example:
        @registry.register_problem
        class TranslateEncs(Text2TextProblem):
            "English to Czech."
            source_lang, target_lang, tfds_default = "en", "cs", "wmt16_translate/cs-en"
    """

    tfds_default: str = ""
    default_source: str = "wmt14"
    large_vocab_size: int = VOCAB_SIZE
    folder_vocab_sizes: tuple[tuple[int, int], ...] = FOLDER_VOCAB_SIZES
    lines_have_tags: bool = False  # whether each line begins with a tag of the vocabulary
    separates_words: bool = False  # whether inputs have a space between any two words

    @property
    def approx_vocab_size(self) -> int:
        return self.large_vocab_size

    def make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        """Returns the source of a `--data_source`.

        Raises:
            T2TError: there is no such source, it cannot be read, or the class sets no languages.
        """
        where = f"{place_of(type(self))}: problem {self.name}"
        if hasattr(self, "generate_samples"):
            raise T2TError(
                f"{where}: generate_samples is tensor2tensor's method; define make_source, which returns a "
                "PairsSource of these pairs: see t2t_revival/from_tensor2tensor.md, Porting a problem"
            )
        if not (self.source_lang and self.target_lang):
            raise T2TError(
                f"{where}: its class must set source_lang and target_lang, or override make_source"
            )
        return source(data_source, self.source_lang, self.target_lang, self.tfds_default, tmp_dir)

    def default_vocab_size(self, kind: str, pairs: int) -> int:
        """Returns the number of pieces if `vocab_size` is 0: the class's own, or by the corpus size."""
        approx = self.approx_vocab_size
        if type(self).approx_vocab_size is not Text2TextProblem.approx_vocab_size:
            return approx
        if kind == "sample":
            return SAMPLE_VOCAB_SIZE
        if kind in ("folder", "hf"):
            return next((size for bound, size in self.folder_vocab_sizes if pairs < bound), approx)
        return approx

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Returns texts that are always one piece of the vocabulary."""
        return ()

    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        from t2t_revival.data import examples

        data = self.shards(split, data_dir)
        self.vocabularies(data_dir)
        return examples.dataset(data.paths)

    def text(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        """Yields the sentence pairs of a split, decoded from the shards."""
        from t2t_revival.data import examples

        vocabularies = self.vocabularies(data_dir)
        for inputs, targets in examples.read(self.shards(split, data_dir).paths):
            yield vocabularies.inputs.decode(inputs), vocabularies.targets.decode(targets)

    def references(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        """Yields the inputs of a split with the references against which their outputs are measured."""
        return self.text(split, data_dir)

    def preprocess(self, line: str, tokenized: bool = False) -> str:
        """Converts a user's line, without line end, to an input of the model.

        A `tokenized` line already has spaces between words and punctuation.

        Raises:
            T2TError: `tokenized` has no effect on this problem.
        """
        if tokenized:
            raise T2TError(
                f"decode_hparams: tokenized=True is for parsing: {self.name} takes lines as they are"
            )
        return line

    def postprocess(self, inputs: str, output: str) -> Finished:
        """Converts an output of the model for the user; `inputs` is what `preprocess` returned."""
        return Finished(output)

    def encode_target(self, output: str) -> str:
        """Converts a user's output to a target of the model, the inverse of `postprocess`.

        Raises:
            T2TError: it is not a valid output of this problem.
        """
        return output

    def render(self, output: str, width: int) -> str:
        """Formats a postprocessed output for display in `width` columns (`--pretty`).

        Raises:
            T2TError: the problem's outputs are plain text.
        """
        raise T2TError(f"--pretty is for trees, but the outputs of {self.name} are text")
