"""English to Chinese by the commands: a vocabulary for each side, from the corpus to each engine."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from t2t_revival import Translator
from t2t_revival.model_folder import Run
from tests.support.commands import run
from tests.support.line_corpus import write_pairs

pytestmark = pytest.mark.slow
NOUNS = {"dog": "狗", "cat": "猫", "horse": "马", "child": "孩子", "bird": "鸟"}
VERBS = {"sees": "看见", "finds": "找到", "follows": "跟着"}
QUICK = (
    "batch_size=512,learning_rate_warmup_steps=150,learning_rate_constant=0.5,"
    "layer_prepostprocess_dropout=0.0,num_hidden_layers=1"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of all sentences of a grammar; `.de` is Chinese, for a built-in problem."""
    folder = tmp_path_factory.mktemp("scripts")
    pairs = [
        (f"the {one} {verb} the {other} .", f"{NOUNS[one]}{VERBS[verb]}{NOUNS[other]}。")
        for one, verb, other in itertools.product(NOUNS, VERBS, NOUNS)
    ]
    write_pairs(folder / "corpus", {"train": pairs * 2, "dev": pairs[::6]})
    return folder


@pytest.fixture(scope="module")
def model(place: Path) -> Path:
    """A model that has seen a part of the grammar."""
    data = ["--problem=translate_ende", f"--data_dir={place / 'data'}"]
    how = [f"--data_source={place / 'corpus'}", "--separate_vocabularies", "--vocab_size=300"]
    run("t2t-datagen", *data, *how)
    run(
        "t2t-trainer",
        *data,
        "--hparams_set=tiny",
        f"--output_dir={place / 'model'}",
        f"--hparams={QUICK}",
        "--train_steps=200",
        "--eval_bleu_sentences=0",
    )
    return place / "model"


def test_each_side_has_its_vocabulary(model: Path) -> None:
    stored = Run.load(model)
    assert [stored.vocabulary, stored.target_vocabulary] == [
        f"vocab.translate_ende.{language}.300.spm" for language in ("en", "de")
    ]
    run("t2t-eval", f"--output_dir={model}", "--checkpoint=newest")


def test_engines_and_their_printed_steps_have_the_same_outputs(
    model: Path, place: Path, capsys: pytest.CaptureFixture
) -> None:
    """With a shortlist too, which is of the target's pieces."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    import sentencepiece

    source = place / "corpus" / "dev.en"
    run("t2t-shortlist", f"--output_dir={model}", "--translations=8", "--frequent=5")
    short = ["--engine=ctranslate2", "--decode_hparams=shortlist=on"]
    plain, other = (
        run("t2t-decoder", f"--output_dir={model}", f"--decode_from_file={source}", *how).stdout.splitlines()
        for how in ([], short)
    )
    assert plain == other
    assert len({*plain}) > 5
    printed = run("t2t-exporter", f"--output_dir={model}", "--format=ctranslate2").stdout
    _, _, steps = printed.partition("next, in Python:\n")
    line = source.read_text(encoding="utf-8").splitlines()[0]
    exec(steps.replace('"..."', repr(line)), {"ctranslate2": ctranslate2, "sentencepiece": sentencepiece})
    assert capsys.readouterr().out.splitlines()[-1] == plain[0]


def test_a_warm_start_takes_both(model: Path, place: Path) -> None:
    run(
        "t2t-trainer",
        "--problem=translate_ende",
        "--hparams_set=tiny",
        f"--warm_start_from={model}",
        f"--data_source={place / 'corpus'}",
        f"--data_dir={place / 'again'}",
        f"--output_dir={place / 'started'}",
        "--hparams=num_hidden_layers=1,learning_rate_constant=1e-20",
        "--train_steps=1",
    )
    assert Run.load(place / "started").fingerprints == Run.load(model).fingerprints
    line = (place / "corpus" / "dev.en").read_text(encoding="utf-8").splitlines()[0]
    assert Translator.load(place / "started").translate(line) == Translator.load(model).translate(line)


@pytest.mark.nightly
def test_a_student_has_its_teachers(model: Path, place: Path) -> None:
    flags = [f"--teacher={model}", "--hparams_set=tiny", f"--output_dir={place / 'student'}"]
    run("t2t-distill", *flags, f"--hparams={QUICK}", "--train_steps=2", "--eval_bleu_sentences=0")
    assert Run.load(place / "student").fingerprints == Run.load(model).fingerprints


def test_the_other_direction_reads_the_same_data(model: Path, place: Path) -> None:
    out = place / "reversed"
    data = ["--problem=translate_ende_rev", f"--data_dir={place / 'data'}"]
    quick = [f"--hparams={QUICK},subword_dropout=0.1", "--train_steps=1", "--eval_bleu_sentences=0"]
    run("t2t-trainer", *data, "--hparams_set=tiny", f"--output_dir={out}", *quick)
    forward, backward = Run.load(model), Run.load(out)
    assert backward.fingerprints == forward.fingerprints[::-1]
    assert backward.vocabularies == forward.vocabularies
    run("t2t-eval", f"--output_dir={out}", "--eval_bleu_sentences=2")
    paths = ",".join(str(out / name) for name in forward.vocabularies)
    with pytest.raises(AssertionError, match=f"--vocab_file={re.escape(shlex.quote(paths))}"):
        run("t2t-eval", f"--output_dir={out}", f"--data_dir={place / 'none'}")
