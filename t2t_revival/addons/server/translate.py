"""`/translate`: texts in, translations out, as plain JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, create_model, model_validator

from t2t_revival.addons.lexical.constraints import LineConstraints
from t2t_revival.addons.lexical.json_inputs import JsonLine
from t2t_revival.addons.lexical.terminology import Terminology
from t2t_revival.addons.server.predict import RequestError
from t2t_revival.addons.server.requests import RequestBody
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.options import MAX_CANDIDATES, SETTINGS, DecodeHParams, Role
from t2t_revival.errors import T2TError
from t2t_revival.serving.signatures import (
    DESCRIBE,
    INPUTS,
    SCORE,
    WITH_OPTIONS,
    WITH_PREFIXES,
    WITH_SAMPLING,
    WITH_TABLES,
)
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

    from t2t_revival.decoding.outputs import Translation as LineOutput
    from t2t_revival.serving.served_translator import ServedTranslator

Text = Annotated[str, AfterValidator(lambda text: text.encode("utf-8", "replace").decode())]  # always UTF-8
Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
PARSED = {"int": int, "float": float, "bool": bool, "str": str}
MAX_INT = 2**31 - 1
MAX_BEAM_SIZE = int(SETTINGS["beam_size"].most or MAX_INT)
NOT_SERVED = {"return_beams", "tokenized"}  # a request has n, and its server the problem


def _keys() -> dict[str, Any]:
    """Returns the keys of a request's options that are settings of decoding, as Pydantic takes them."""
    keys: dict[str, Any] = {}
    for field in dataclasses.fields(DecodeHParams):
        about, default = SETTINGS[field.name], getattr(DecodeHParams, field.name)
        if about.request in (None, Role.COLUMN) or field.name in NOT_SERVED:
            continue
        kind: Any = PARSED[str(field.type)]
        limits: dict[str, Any] = {}
        if about.least is not None:
            most = about.most or math.inf
            limits = {"ge": min(about.least, default), "le": most if kind is float else min(most, MAX_INT)}
        elif about.choices:
            kind = Literal[tuple(dict.fromkeys((default, *about.choices)))]
        keys[field.name] = Annotated[kind, Field(description=about.meaning, **limits)], default
    return keys


Settings: Any = create_model("Settings", __base__=RequestBody, **_keys())


class Options(Settings):
    """Settings of decoding: by default the export's; where one is given, the others are the usual ones."""

    n: Annotated[int, Field(ge=1, description="Number of outputs; of a search at most beam_size.")] = 1
    tag: Annotated[str, StringConstraints(pattern=r"^\S*$")] = ""
    candidates: Annotated[int, Field(ge=2, le=MAX_CANDIDATES)] | None = Field(
        default=None, description="Of mbr; by default 32, or as many as the server allows."
    )
    prefix: Annotated[Text, Field(description="Beginning of the outputs.")] = ""
    constraints: list[Phrase] = Field(default=[], description="Phrases that all outputs must have.")
    avoid: list[Phrase] = Field(default=[], description="Phrases that no output may have.")
    terms: dict[Phrase, Phrase] = Field(
        default={}, description="Translations of terms, for lines that have them."
    )

    @model_validator(mode="after")
    def _check_effects(self) -> Options:
        """Rejects options without effect, and those that exclude each other."""
        if self.sampling_method == "random" and "beam_size" in self.model_fields_set:
            raise ValueError("beam_size has no effect with sampling_method=random: give n")
        if self.sampling_method != "random" and self.n > self.beam_size:
            raise ValueError(f"n={self.n} must be at most beam_size, which is {self.beam_size}")
        try:
            self.decode_hparams(MAX_CANDIDATES)
        except T2TError as error:
            raise ValueError(str(error).removeprefix("decode_hparams: ")) from error
        return self

    @property
    def signatures(self) -> dict[str, str]:
        """Signatures that these options need, and the names of the options."""
        asked = {
            WITH_SAMPLING: "sampling_method" if self.sampling_method == "random" else "",
            WITH_TABLES: "constraints, avoid and terms" if self.has_phrases else "",
            WITH_PREFIXES: "prefix" if self.prefix else "",
            DESCRIBE: "split_sentences" if self.split_sentences else "",
            SCORE: "markup" if self.markup else "",
        }
        return {signature: names for signature, names in asked.items() if names}

    @property
    def has_phrases(self) -> bool:
        """True if outputs must have or must not have phrases."""
        return bool(self.constraints or self.avoid or self.terms)

    def decode_hparams(self, max_candidates: int) -> DecodeHParams:
        """Returns these settings; candidates are by default at most `max_candidates`."""
        given = self.model_dump(include={field.name for field in dataclasses.fields(DecodeHParams)})
        given["candidates"] = self.candidates or DecodeHParams.candidates
        if self.mbr and not self.candidates:
            given["candidates"] = min(given["candidates"], max(max_candidates, self.beam_size, 2))
        if self.sampling_method == "random":
            given["beam_size"] = min(self.n, MAX_BEAM_SIZE)
        return DecodeHParams(**given)

    def constraints_of(self, lines: Sequence[str]) -> list[LineConstraints]:
        """Returns the constraints of each line."""
        none = Terminology({})
        given = [JsonLine(line, self.constraints, self.avoid, self.terms) for line in lines]
        return [line.all_constraints(none) for line in given]


class TranslateRequest(RequestBody):
    """A text or a list of texts, one sentence each."""

    inner_keys: ClassVar[dict[str, str]] = {name: f"options.{name}" for name in Options.model_fields}

    text: Text | list[Text]
    model: Annotated[str | None, Field(description="Needed where the server has several.")] = None
    options: Options | None = None
    stream: Annotated[bool, Field(description="Whether to answer line by line, as NDJSON.")] = False

    @property
    def lines(self) -> list[str]:
        """The texts."""
        return [self.text] if isinstance(self.text, str) else self.text

    @property
    def is_plain(self) -> bool:
        """True if each text is translated by one call of the model, and little else."""
        return not (self.needs_description or (self.options and self.options.mbr))

    @property
    def needs_description(self) -> bool:
        """True if the model must tell its vocabularies."""
        return bool(self.options and self.options.signatures.keys() - {WITH_SAMPLING, WITH_PREFIXES})

    def check(self, definitions: Mapping[str, SignatureDef]) -> None:
        """Checks that a model has the signatures that the options need.

        Raises:
            RequestError: it lacks one, or has no tags.
        """
        if self.options is None:
            return
        for signature, names in self.options.signatures.items():
            if signature not in definitions:
                raise RequestError(f"this model does not support {names}: leave it out, or export it again")
        if self.options.tag and "tag" not in definitions[WITH_OPTIONS].inputs:
            raise RequestError("this model has no tags: leave tag out")
        signature = WITH_SAMPLING if self.options.sampling_method == "random" else WITH_OPTIONS
        for name in INPUTS.keys() - definitions[signature].inputs.keys():
            if getattr(self.options, name) != getattr(DecodeHParams, name):
                raise RequestError(f"this model does not take {name} in a request: leave it out")

    def columns(self) -> dict[str, list[Any]]:
        """Returns the texts, and the options that a server bounds."""
        columns: dict[str, list[Any]] = {"inputs": self.lines}
        if options := self.options:
            is_search = options.sampling_method == "argmax"
            columns |= {"n": [options.n], "extra_length": [options.extra_length]}
            columns |= {"beam_size": [options.beam_size] * is_search}
            columns |= {"candidates": [options.candidates] if options.candidates else []}
        return columns

    async def translate(self, translator: ServedTranslator, lines: Sequence[str]) -> list[Translation]:
        """Translates some of the texts."""
        asked, lists_all = Lines(lines), False
        if options := self.options:
            prefixes = [options.prefix if not is_blank(text) else "" for text in lines]
            constraints = options.constraints_of(lines) if options.has_phrases else None
            asked, lists_all = Lines(lines, options.n, False, prefixes, 1, constraints), options.n > 1
        found = await translator.decoder(asked, lambda _: None).all_lines()
        is_export = self.options is None
        return [Translation.of(outputs, len(outputs) > 1 if is_export else lists_all) for outputs in found]


class Output(BaseModel):
    """An output, its score (log-probability / length penalty), and whether its end is missing, with `cut`."""

    text: str
    score: float
    cut: bool | None = None


class Translation(Output):
    """The best output of a line, and all where more than one was asked for.

    `truncated` is true of a line that is longer than the model's inputs: its end is missing. `unaligned` has
    terms whose translations are in the best output for other words, as far as the word alignment shows;
    `missing` and `present` are phrases that the best output lacks, and that it could not avoid.
    """

    nbest: list[Output] | None = None
    truncated: bool | None = None
    unaligned: dict[str, str] | None = None
    missing: list[str] | None = None
    present: list[str] | None = None

    @classmethod
    def of(cls, outputs: Sequence[LineOutput], lists_all: bool) -> Translation:
        """Returns the translation of a line, given its outputs, best first."""
        best, *_ = found = [
            Output(text=one.text, score=round(one.score, 6), cut=one.cut or None) for one in outputs
        ]
        return cls(
            text=best.text,
            score=best.score,
            cut=best.cut,
            nbest=found if lists_all else None,
            truncated=outputs[0].truncated or None,
            unaligned=dict(outputs[0].unaligned) or None,
            missing=[*outputs[0].missing] or None,
            present=[*outputs[0].present] or None,
        )


class TranslateAnswer(BaseModel):
    """Translations of the lines, in their order."""

    model: str
    version: int
    translations: list[Translation]
