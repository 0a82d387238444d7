"""Phrases in outputs of exported models: whoever asks a model makes the tables of its phrases."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.data.vocabulary import Vocabularies, open_vocabulary
from t2t_revival.decoding.constrained_lines import Attempt, ConstrainedLines, Found
from t2t_revival.decoding.lexical_tables import LexicalTables
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.phrases import OTHER_CLASSES, Spelling
from t2t_revival.decoding.preprocessor import LINE_ENDS, Preprocessor, Truncation
from t2t_revival.serving.client import text_of
from t2t_revival.serving.signatures import DESCRIBE, NO_OUTPUT, Inputs, option_inputs

if TYPE_CHECKING:
    from t2t_revival.decoding.lexical_constraints import LineConstraints
    from t2t_revival.serving.client import Model

Requests = Generator[Inputs, Mapping[str, Any], dict[int, list[Translation]]]


@dataclass(frozen=True)
class Description:
    """The parts of an exported model on which tables of phrases depend; its signature `DESCRIBE` tells them.

    Attributes:
        vocabularies: of source and target.
        max_length: maximum number of tokens of an input, EOS included.
        max_length_ratio: see `DecodeHParams`.
    """

    vocabularies: Vocabularies
    max_length: int
    max_length_ratio: float

    @classmethod
    def of(cls, model: Model) -> Description:
        """Returns the description that a model tells.

        Raises:
            T2TError: there is no response, or the model has none.
        """
        (text,) = model.predict(DESCRIBE, {"inputs": [""]})["description"]
        values = json.loads(text_of(text))
        opened = [
            open_vocabulary(Path(name), base64.b64decode(content)) for name, content in values["vocabularies"]
        ]
        return cls(Vocabularies(opened[0], opened[-1]), values["max_length"], values["max_length_ratio"])

    def to_json(self) -> str:
        """Returns the description as an exported model holds it."""
        vocabularies = [
            (one.path.name, base64.b64encode(one.content).decode()) for one in self.vocabularies.all
        ]
        values = {"max_length": self.max_length, "max_length_ratio": self.max_length_ratio}
        return json.dumps({"vocabularies": vocabularies, **values})

    @cached_property
    def spelling(self) -> Spelling:
        """Spells phrases."""
        return Spelling(self.vocabularies.targets)

    def requests(
        self,
        inputs: Sequence[str],
        constraints: Sequence[LineConstraints | None],
        options: DecodeHParams,
        n: int,
        first_line: int = 1,
    ) -> Requests:
        """Yields inputs of the signature `WITH_TABLES`, is sent each response, and returns outputs.

        Args:
            inputs: as the model reads them, with their tags.
            constraints: of each; `None` for none.
            options: of the search.
            n: number of outputs.
            first_line: number of the first line, for errors.

        Returns:
            The outputs of the inputs with constraints, by index; at most n, best first, and an empty one of a
            blank input. They are not postprocessed.

        Raises:
            T2TError: as `ConstrainedLines.add`.
        """
        options = replace(options, max_length_ratio=self.max_length_ratio, tag="")
        preprocessor = Preprocessor(self.vocabularies, None, options, self.max_length, first_line)
        inputs, cut = preprocessor.inputs(inputs, preprocessed=True), list[Truncation]()
        lines, bound = ConstrainedLines(None, preprocessor, self.spelling), {}
        for index, ids in enumerate(preprocessor.sources(inputs, cut.append)):
            if one := constraints[index]:
                lines.add(index, one, inputs[index], ids)
                bound[index] = [Translation("", 0.0)]
        searches = lines.searches([*bound])
        try:
            attempt = next(searches)
            while True:
                given = {**option_inputs(options, len(attempt.indices)), "n": [n] * len(attempt.indices)}
                texts = [inputs[index] for index in attempt.indices]
                response = yield {"inputs": texts, **given, "tables": pack(attempt.tables)}
                attempt = searches.send(_found(attempt, response))
        except StopIteration as end:
            found = end.value
        decode, truncated = self.vocabularies.targets.decode, {one.number - first_line for one in cut}
        for index, rows, scores in found:
            bound[index] = [
                Translation(decode(ids).translate(LINE_ENDS), score, truncated=index in truncated)
                for ids, score in zip(rows, scores, strict=True)
                if score > -np.inf
            ] or [Translation("", -np.inf)]
        return bound


def next_request(
    requests: Requests, response: Mapping[str, Any] | None = None
) -> tuple[Inputs | None, dict[int, list[Translation]]]:
    """Returns the request that follows a response, or `None` and the outputs; see `Description.requests`."""
    try:
        return (next(requests) if response is None else requests.send(response)), {}
    except StopIteration as end:
        return None, end.value


def _found(attempt: Attempt, response: Mapping[str, Any]) -> dict[int, Found]:
    """Returns what the searches of a response have found."""
    scores = [[one if one > NO_OUTPUT else -np.inf for one in row] for row in response["scores"]]
    return dict(zip(attempt.indices, zip(response["ids"], scores, strict=True), strict=True))


def pack(tables: LexicalTables) -> list[str]:
    """Returns a text for each sentence: web-safe base64 of int32, little-endian.

    They are the numbers of phrases, of states and of tokens in the alphabet, and then the sentence's row of
    each table. Sentences of any sizes can therefore be one batch of a server.
    """
    phrases = tables.costs.shape[1]
    sizes = [phrases, tables.gains.shape[1] // phrases, tables.alphabet.shape[1]]
    rows = np.concatenate([np.tile(sizes, (len(tables.costs), 1)), *tables], axis=1).astype("<i4")
    return [base64.urlsafe_b64encode(row.tobytes()).decode() for row in rows]


NO_PHRASES = pack(
    LexicalTables(
        alphabet=np.array([[-1]]),
        transitions=np.zeros((1, OTHER_CLASSES + 1), int),
        ended=np.array([[False]]),
        gains=np.array([[0]]),
        next_tokens=np.array([[0]]),
        costs=np.array([[1]]),
        overlaps=np.array([[0]]),
        required=np.array([[0]]),
        forbidden=np.array([[False]]),
        reserved=np.array([[1]]),
    )
)[0]
