"""Outputs of a teacher: complete blocks, resumed and shared out without a changed byte."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from t2t_revival import DecodeHParams, T2TError, Text2TextProblem
from t2t_revival.addons.distillation.teacher_outputs import TeacherOutputs, read_pairs
from t2t_revival.addons.shortlist import Translations
from t2t_revival.decoding.files.shards import Shard
from t2t_revival.problems.problem import Finished
from tests.support.decoded_blocks import SOURCES, TARGETS, lines

MakeOutputs = Callable[..., TeacherOutputs]
MakeTranslator = Callable[..., Any]
MONOLINGUAL = ["the cat sees 3 dogs", "", "   ", "a house " * 30]


def decoded_lines(outputs: TeacherOutputs) -> list[str]:
    return [line for block in outputs.blocks() for line in lines(block.outputs)]


def test_each_source_that_can_be_decoded_is(make_outputs: MakeOutputs, translator: MakeTranslator) -> None:
    outputs = make_outputs(monolingual=MONOLINGUAL)
    assert not outputs.are_complete()
    notes: list[str] = []
    progress: list[tuple[int, int]] = []
    outputs.decode(translator(), Shard(), lambda *done: progress.append(done), notes.append)
    assert notes == ["10 lines to decode; left out: 2 blank, 2 longer than max length"]
    assert outputs.are_complete()
    assert progress[-1] == (8, 10), "at the start of the last block"
    blocks = outputs.blocks()
    assert [len(lines(block.outputs)) for block in blocks] == [4, 4, 2]
    inputs, references = zip(
        *(pair for block in blocks for pair in zip(*read_pairs(block), strict=True)), strict=True
    )
    assert inputs == (*SOURCES, MONOLINGUAL[0])
    assert references == (*TARGETS, "")
    assert decoded_lines(outputs) == [line.upper() for line in inputs]
    dev = ["the dog sees dev0 houses", "the dog sees dev1 houses", "the dog sees dev2 houses"]
    assert read_pairs(outputs.files("dev"))[0] == dev
    assert len(read_pairs(outputs.files("test"))[1]) == 2


def test_the_nearest_output_is_kept_where_there_is_a_reference(
    make_outputs: MakeOutputs, translator: MakeTranslator
) -> None:
    outputs = make_outputs(monolingual=MONOLINGUAL[:1], nearest=True)
    outputs.decode(translator(), Shard())
    assert decoded_lines(outputs) == [*TARGETS, MONOLINGUAL[0].upper()]


def test_nothing_to_decode(make_outputs: MakeOutputs, translator: MakeTranslator) -> None:
    teacher = translator()
    teacher.max_length = 2
    with pytest.raises(T2TError, match="nothing to decode: 10 longer than max length"):
        make_outputs().decode(teacher, Shard())
    assert not make_outputs().folder.exists()


def test_what_cannot_be_distilled(make_outputs: MakeOutputs) -> None:
    class Shouted(Text2TextProblem):
        source_lang, target_lang = "en", "de"

        def postprocess(self, inputs: str, output: str) -> Finished:
            return Finished(output.upper())

    outputs = make_outputs()
    with pytest.raises(T2TError, match="problem shouted cannot be distilled: it has postprocess"):
        dataclasses.replace(outputs, data=dataclasses.replace(outputs.data, problem=Shouted()))


def test_outputs_depend_on_the_shortlist(make_outputs: MakeOutputs, translator: MakeTranslator) -> None:
    outputs = make_outputs(options=DecodeHParams(shortlist="on"))
    folder, vocabulary = outputs.teachers[0].folder.path, translator().vocabulary
    best = np.zeros((vocabulary.size, 1), np.int32)
    Translations(best, np.array([5], np.int32), vocabulary.fingerprint).save(folder)
    outputs.decode(translator(), Shard())
    assert outputs.are_complete()
    Translations(best, np.array([6], np.int32), vocabulary.fingerprint).save(folder)
    with pytest.raises(T2TError, match="holds outputs with translations="):
        outputs.are_complete()
