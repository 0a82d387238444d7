"""`ReversedProblem`: `PROBLEM_rev`, a problem in the other direction on the same data (T2T's `_rev`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registration
from t2t_revival.data.metadata import Metadata
from t2t_revival.data.records import SplitData
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.errors import T2TError
from t2t_revival.problems.problem import Problem
from t2t_revival.problems.text_problems import Text2TextProblem

if TYPE_CHECKING:
    import tensorflow as tf

ONE_WAY = ("preprocess", "postprocess", "encode_target", "render", "references", "reference_lines")


def one_way(problem: type) -> list[str]:
    """Returns the methods of a problem's class that change one side only, so that it has no reverse."""
    return [name for name in ONE_WAY if getattr(problem, name) is not getattr(Text2TextProblem, name)]


def _of_forward(method: str) -> Callable[..., Any]:
    """Returns a method that calls the forward problem's."""

    def call(self: ReversedProblem, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._forward, method)(*args, **kwargs)

    return call


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
                "write a class for the other direction"
            )
        self.config = forward.config
        self._forward = forward
        self.source_lang, self.target_lang = forward.target_lang, forward.source_lang
        self.default_source, self.tfds_default = forward.default_source, forward.tfds_default
        self.usual_hparams = forward.usual_hparams

    @property
    def name(self) -> str:
        """The name of the forward problem and `_rev`."""
        return f"{self._forward.name}{registration.REVERSED}"

    @property
    def approx_vocab_size(self) -> int:
        return self._forward.approx_vocab_size

    # The data in data_dir are made, named and described in the forward direction.
    make_source = _of_forward("make_source")
    dataset_filename = _of_forward("dataset_filename")
    has_data = _of_forward("has_data")
    check_origins = _of_forward("check_origins")
    metadata = _of_forward("metadata")
    hparams = _of_forward("hparams")
    eval_metrics = _of_forward("eval_metrics")
    decode_hparams = _of_forward("decode_hparams")

    def shards(self, split: str, data_dir: str | Path) -> SplitData:
        """Returns the examples of a split, whose sides are swapped in batches."""
        self._refuse(self.metadata(data_dir).tags)
        return dataclasses.replace(self._forward.shards(split, data_dir), swapped=True)

    def generate_data(self, data_dir: str | Path, *args: Any, **kwargs: Any) -> Metadata:
        if mixture := self._forward.requested_mixture:
            self._refuse(mixture.tags)
        return self._forward.generate_data(data_dir, *args, **kwargs)

    def _refuse(self, tags: list[str]) -> None:
        if tags:
            raise T2TError(
                f"problem {self.name}: its data has tags such as {tags[0]} before sources, and the reverse "
                "would have them before targets: leave them out, or write a class for the other direction"
            )

    def corpora(self, split: str, data_dir: str | Path) -> dict[str, ReversedProblem]:
        found = self._forward.corpora(split, data_dir)
        return {name: ReversedProblem(corpus) if name else self for name, corpus in found.items()}

    def vocabularies(self, data_dir: str | Path) -> Vocabularies:
        return Vocabularies(*reversed(self._forward.vocabularies(data_dir)))

    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        return self._forward.dataset(split, data_dir).map(_swapped)

    def text(self, split: str, data_dir: str | Path) -> Iterator[tuple[str, str]]:
        return ((targets, inputs) for inputs, targets in self._forward.text(split, data_dir))


def _swapped(features: dict[str, Any]) -> dict[str, Any]:
    return {**features, "inputs": features["targets"], "targets": features["inputs"]}
