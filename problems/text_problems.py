"""`Text2TextProblem`: problems with lines of text on both sides."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.data import metadata as data_metadata
from t2t_revival.data.generation import OnProgress, generate
from t2t_revival.data.metadata import DataSpec, Metadata, metadata_path, references_path
from t2t_revival.data.mixture import Corpus, CorpusSource, Mixture, is_mixture, parse
from t2t_revival.data.mixture_generation import corpus_name, generate_mixture, not_mixed, summed
from t2t_revival.data.records import CorpusShards, Shards, shard_paths
from t2t_revival.data.source_checks import checked_size, checked_symbols, made_source
from t2t_revival.data.sources import Source, source
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.hints import datagen_command
from t2t_revival.problems.problem import TRAIN, Problem
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


class Text2TextProblem(Problem):
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

    source_lang: str
    target_lang: str
    tfds_default: str = ""
    default_source: str = "wmt14"
    large_vocab_size: int = VOCAB_SIZE
    folder_vocab_sizes: tuple[tuple[int, int], ...] = FOLDER_VOCAB_SIZES
    separates_words: bool = False  # whether inputs have a space between any two words
    targets_are_text: bool = True  # to which the rules of `data.cleaning` can be applied
    reference_lines: Callable[[Source, str], Iterable[str]] | None = None
    _corpus: str = ""  # of a mixture; see `corpora`

    @property
    def approx_vocab_size(self) -> int:
        return self.large_vocab_size

    def eval_metrics(self) -> tuple[str, ...]:
        """Loss, perplexity and accuracy per subword, and BLEU of real decoding."""
        return (*super().eval_metrics(), "bleu")

    def make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        """Returns the source of a `--data_source`.

        Raises:
            T2TError: there is no such source, it cannot be read, or the class sets no languages.
        """
        where = f"{place_of(type(self))}: problem {self.name}"
        if hasattr(self, "generate_samples"):
            raise T2TError(
                f"{where}: generate_samples is tensor2tensor's method; define make_source, which returns a "
                "PairsSource of these pairs: see docs/from_tensor2tensor.md, Porting a problem"
            )
        languages = [getattr(self, name, None) for name in ("source_lang", "target_lang")]
        if not all(isinstance(language, str) and language for language in languages):
            raise T2TError(
                f"{where}: its class must set source_lang and target_lang, or override make_source"
            )
        return source(data_source, self.source_lang, self.target_lang, self.tfds_default, tmp_dir)

    def _make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        return made_source(self.make_source, data_source, tmp_dir)

    def default_vocab_size(self, data_source: Source) -> int:
        """Returns the number of pieces if `vocab_size` is 0: the class's own, or by the corpus size."""
        approx = checked_size(self, self.approx_vocab_size, "approx_vocab_size")
        if type(self).approx_vocab_size is not Text2TextProblem.approx_vocab_size:
            return approx
        if data_source.kind == "sample":
            return SAMPLE_VOCAB_SIZE
        if data_source.kind in ("folder", "hf"):
            pairs = data_source.count(TRAIN)
            return next((size for bound, size in self.folder_vocab_sizes if pairs < bound), approx)
        return approx

    def user_symbols(self, data_source: Source) -> Sequence[str]:
        """Returns texts that are always one piece of the vocabulary."""
        return ()

    def generate_data(
        self,
        data_dir: str | Path,
        tmp_dir: str | Path | None = None,
        progress: OnProgress | None = None,
        shard_runner: ShardRunner = make_shards,
    ) -> Metadata:
        if self.clean and not self.targets_are_text:
            raise T2TError(
                f"--clean: its rules are for text, which the targets of {self.name} are not; leave it out"
            )
        if self.separate_vocabularies and not self.targets_are_text:
            raise T2TError(
                f"--separate_vocabularies: inputs and targets of {self.name} share words; leave it out"
            )
        vocab_file, target_vocab_file = (*self.vocab_files, None, None)[:2]
        spec = DataSpec(
            name=self.dataset_filename(),
            data_source=self.data_source,
            default_source=self.default_source,
            make_source=self._make_source,
            vocab_size=self.vocab_size,
            default_vocab_size=lambda source: checked_size(
                self, self.default_vocab_size(source), "default_vocab_size"
            ),
            user_symbols=lambda source: checked_symbols(self, source),
            references=self.reference_lines,
            vocab_file=vocab_file,
            clean=self.clean,
            update_vocab=self.update_vocab,
            target_vocab_file=target_vocab_file,
            separate_vocabularies=self.separate_vocabularies,
        )
        tmp = self.tmp_dir if tmp_dir is None else Path(tmp_dir).expanduser()
        where = (Path(data_dir).expanduser(), tmp, progress, shard_runner)
        if not (data_source := self._mixture_source(where[0])):
            return generate(spec, *where)
        if self.reference_lines:
            raise T2TError(f"--data_source={data_source}: {self.name} takes one source, not several corpora")
        spec = dataclasses.replace(spec, data_source=data_source)
        return generate_mixture(spec, self.mixture(data_source), self.corpus_source, *where)

    def _mixture_source(self, data_dir: Path) -> str | None:
        """The mixture that is asked for, or that `data_dir` was made from; `None` for one source."""
        path = metadata_path(data_dir, self._files_name)
        if self.data_source:
            return self.data_source if is_mixture(self.data_source) else None
        found = Metadata.load(path) if path.is_file() else None
        return found.source if found and found.corpora else None

    def mixture(self, data_source: str) -> Mixture:
        """Returns the corpora that a `--data_source` lists; raises T2TError if it is no valid list."""
        return parse(data_source)

    def corpus_source(self, corpus: Corpus, tmp_dir: Path | None) -> Source:
        """Returns the source of a corpus of a mixture; raises T2TError as `make_source`."""
        if corpus.languages:
            raise T2TError(
                f"corpus {corpus.name!r}: languages are for problems of several, such as translate_many; "
                f"{self.name} has one pair"
            )
        return self._make_source(corpus.source, tmp_dir)

    @property
    def _files_name(self) -> str:
        name = self.dataset_filename()
        return corpus_name(name, self._corpus) if self._corpus else name

    def has_data(self, data_dir: str | Path) -> bool:
        path = metadata_path(Path(data_dir).expanduser(), self._files_name)
        if not (path.is_file() and self.data_source and is_mixture(self.data_source)):
            return path.is_file()
        corpora = [self._view(corpus.name) for corpus in self.mixture(self.data_source).corpora]
        if not all(corpus.has_data(data_dir) for corpus in corpora):
            return False
        return (
            Metadata.load(path).corpora == self.metadata(data_dir).corpora
        )  # or other weights are asked for

    def metadata(self, data_dir: str | Path) -> Metadata:
        """Returns the source, the vocabulary and the counts of the data in `data_dir`.

        Raises:
            T2TError: there is none, or it was made from another source or with another vocabulary than this
                problem has.
        """
        folder = Path(data_dir).expanduser()
        path = metadata_path(folder, self._files_name)
        if not path.is_file():
            raise T2TError(f"no data for {self.name} in {folder}: run {datagen_command(self, folder)}")
        found = Metadata.load(path)
        source_name = None
        if self.data_source and is_mixture(self.data_source):
            found = self._mixed(found, folder)
        elif self.data_source:
            requested = self._make_source(self.data_source, self.tmp_dir)
            if (source_name := requested.name) != found.source:
                requested.check()
        vocabularies = self.vocab_size, self.vocab_files
        how = self.update_vocab, self.separate_vocabularies
        data_metadata.check_same(folder, found, source_name, *vocabularies, self.clean, *how)
        return found

    def _mixed(self, found: Metadata, folder: Path) -> Metadata:
        """The metadata of the mixture that is asked for, given those of the data's own mixture."""
        assert self.data_source
        mixture = self.mixture(self.data_source)
        if not found.corpora:
            raise not_mixed(found, folder)
        corpora = {}
        for corpus in mixture.corpora:
            view = self._view(corpus.name)
            if not view.has_data(folder):
                raise T2TError(
                    f"{folder} lacks the corpus {corpus.name!r}: run {datagen_command(self, folder)}"
                )
            corpora[corpus.name] = view.metadata(folder)
            source = CorpusSource(self.corpus_source(corpus, self.tmp_dir), corpus)
            data_metadata.check_same(folder, corpora[corpus.name], source.name, 0)
        return summed(found.name, self.data_source, mixture, corpora)

    def corpora(self, split: str, data_dir: str | Path) -> dict[str, Text2TextProblem]:
        """Returns the problems of a mixture's corpora that have a split, by name.

        Each is this problem on the data of one corpus. Data of one source is one problem with the name "".
        """
        metadata = self.metadata(data_dir)
        if not metadata.corpora:
            return {"": self}
        views = {name: self._view(name) for name in metadata.corpora}
        return {name: view for name, view in views.items() if split in view.metadata(data_dir).splits}

    def _view(self, corpus: str) -> Text2TextProblem:
        view = copy.copy(self)
        view._corpus = corpus
        view.data_source, view.vocab_size, view.vocab_files, view.clean = None, 0, (), None
        view.update_vocab, view.separate_vocabularies = False, None
        return view

    def vocabularies(self, data_dir: str | Path) -> Vocabularies:
        """Returns the vocabularies of inputs and targets.

        Raises:
            T2TError: one is missing, corrupt, or not that with which the shards were made.
        """
        metadata = self.metadata(data_dir)
        return Vocabularies.open(data_metadata.check_vocabularies(Path(data_dir).expanduser(), metadata))

    def vocabulary(self, data_dir: str | Path) -> TextEncoder:
        """Returns the vocabulary of the inputs, which most problems share with the targets."""
        return self.vocabularies(data_dir).inputs

    def feature_encoders(self, data_dir: str | Path) -> dict[str, TextEncoder]:
        """Implements `Problem.feature_encoders`; both are the same object unless they are separate."""
        return self.vocabularies(data_dir)._asdict()

    def shards(self, split: str, data_dir: str | Path) -> Shards:
        """Returns the paths of a split's shards, in order; of a mixture, those of all corpora.

        Raises:
            T2TError: there is no such split, or a shard is missing or truncated.
        """
        folder, metadata = Path(data_dir).expanduser(), self.metadata(data_dir)
        if split not in metadata.splits:
            raise T2TError(
                f"{self.name} in {folder} has no {split} split; it has {', '.join(metadata.splits)}"
            )
        if metadata.corpora:
            return self._mixed_shards(split, folder, metadata)
        paths = shard_paths(folder, self._files_name, split)
        data_metadata.check_sizes(paths, metadata.splits[split])
        return Shards(paths, weighted=metadata.weighted)

    def _mixed_shards(self, split: str, folder: Path, metadata: Metadata) -> Shards:
        parts = [
            CorpusShards(
                name,
                corpus.shards(split, folder),
                corpus.metadata(folder).splits[split].examples,
                metadata.corpora[name],
            )
            for name, corpus in self.corpora(split, folder).items()
        ]
        paths = chain.from_iterable(part.paths for part in parts)
        return Shards(paths, corpora=parts, weighted=metadata.weighted)

    def data_fingerprint(self, split: str, data_dir: str | Path) -> str:
        """Returns 8 hexadecimal digits that differ for different examples, references or vocabularies."""
        paths = self.shards(split, data_dir)
        references = references_path(Path(data_dir).expanduser(), self._files_name, split)
        if references.is_file():
            paths.append(references)
        vocabularies = "".join(made.fingerprint for made in self.metadata(data_dir).vocabularies)
        return data_metadata.data_fingerprint(paths, vocabularies)

    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        from t2t_revival.data import examples

        paths = self.shards(split, data_dir)
        self.vocabularies(data_dir)
        return examples.dataset(paths)

    def text(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        """Yields the sentence pairs of a split, decoded from the shards."""
        from t2t_revival.data import examples

        vocabularies = self.vocabularies(data_dir)
        for inputs, targets in examples.read(self.shards(split, data_dir)):
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
