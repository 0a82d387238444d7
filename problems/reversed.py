"""`ReversedProblem`: `PROBLEM_rev`, a problem in the other direction on the same data (T2T's `_rev`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.data.generation import OnProgress
from t2t_revival.data.metadata import Metadata
from t2t_revival.data.records import ReversedShards
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabulary.text_encoder import TextEncoder
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.problems.problem import Problem
from t2t_revival.problems.text_problems import Text2TextProblem

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_revival.hparams.hparams import HParams

ONE_WAY = ("preprocess", "postprocess", "encode_target", "render", "references", "reference_lines")


def one_way(problem: type) -> list[str]:
    """Returns the methods of a problem's class that change one side only, so that it has no reverse."""
    return [name for name in ONE_WAY if getattr(problem, name) is not getattr(Text2TextProblem, name)]


class ReversedProblem(Text2TextProblem):
    """A problem with inputs and targets swapped when they are read.

    Vocabulary and shards in data_dir are those of the forward problem.

    Args:
        forward: the problem to reverse.

    Raises:
        T2TError: it is not a problem of text to text, or its lines are changed before or after the model.
    """

    was_reversed = True

    def __init__(self, forward: Problem) -> None:
        if not isinstance(forward, Text2TextProblem):
            raise T2TError(f"problem {forward.name} has no reverse: it is not a problem of text to text")
        if methods := one_way(type(forward)):
            raise T2TError(
                f"problem {forward.name} has no reverse: it has {', '.join(methods)} for one direction; "
                "write a class for the other one"
            )
        super().__init__(forward.data_source, forward.vocab_size, forward.tmp_dir, forward.vocab_file)
        self._forward = forward
        self.source_lang = getattr(forward, "target_lang", "")
        self.target_lang = getattr(forward, "source_lang", "")
        self.default_source, self.tfds_default = forward.default_source, forward.tfds_default
        self.usual_hparams = forward.usual_hparams

    @property
    def name(self) -> str:
        """The name of the forward problem and `_rev`."""
        return f"{self._forward.name}{registry.REVERSED}"

    @property
    def approx_vocab_size(self) -> int:
        return self._forward.approx_vocab_size

    def dataset_filename(self) -> str:
        """Implements `Problem.dataset_filename`; the files are those of the forward problem."""
        return self._forward.dataset_filename()

    def make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        """Implements `Text2TextProblem.make_source`; in the forward direction, in which shards are made."""
        return self._forward.make_source(data_source, tmp_dir)

    def generate_data(
        self,
        data_dir: str | Path,
        tmp_dir: str | Path | None = None,
        progress: OnProgress | None = None,
        shard_runner: ShardRunner = make_shards,
    ) -> Metadata:
        return self._forward.generate_data(data_dir, tmp_dir, progress, shard_runner)

    def has_data(self, data_dir: str | Path) -> bool:
        return self._forward.has_data(data_dir)

    def metadata(self, data_dir: str | Path) -> Metadata:
        """Implements `Text2TextProblem.metadata`; in the forward direction."""
        return self._forward.metadata(data_dir)

    def vocabulary(self, data_dir: str | Path) -> TextEncoder:
        return self._forward.vocabulary(data_dir)

    def shards(self, split: str, data_dir: str | Path) -> ReversedShards:
        """Implements `Text2TextProblem.shards`; their sides are swapped in batches."""
        return ReversedShards(self._forward.shards(split, data_dir))

    def feature_encoders(self, data_dir: str | Path) -> dict[str, TextEncoder]:
        encoders = self._forward.feature_encoders(data_dir)
        return {**encoders, "inputs": encoders["targets"], "targets": encoders["inputs"]}

    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        return self._forward.dataset(split, data_dir).map(
            lambda example: {**example, "inputs": example["targets"], "targets": example["inputs"]}
        )

    def text(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        return ((targets, inputs) for inputs, targets in self._forward.text(split, data_dir))

    def hparams(self, defaults: HParams) -> HParams:
        return self._forward.hparams(defaults)

    def eval_metrics(self) -> tuple[str, ...]:
        return self._forward.eval_metrics()

    def decode_hparams(self) -> dict[str, Any]:
        return self._forward.decode_hparams()
