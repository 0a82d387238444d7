"""Marian itself, where it is installed (extra marian): models that it trains, in and out."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from t2t_revival import Translator
from t2t_revival.addons.imports.marian import import_model
from t2t_revival.checkpoints import directory
from t2t_revival.checkpoints.file import StoredWeights
from t2t_revival.sample_corpus import lines
from tests.support.commands import run
from tests.support.marian_models import sentencepiece_model

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
PAIRS = [*zip(lines("test.en")[:200], lines("test.de")[:200], strict=True)]
TIED = ["--tied-embeddings-all"]
SSRU = ["--transformer-decoder-autoreg=rnn", "--dec-cell=ssru"]
PRE_NORM = ["--transformer-preprocess=n", "--transformer-postprocess=da", "--transformer-postprocess-top=n"]
FORMS = {
    "tied": TIED,
    "two_vocabularies": ["--tied-embeddings"],
    "untied": [],
    "one_table_for_embeddings": ["--tied-embeddings-src"],
    "relu": [*TIED, "--transformer-ffn-activation=relu"],
    "no_biases": [*TIED, "--transformer-no-bias", "--output-omit-bias"],
    "ssru": [*TIED, *SSRU],
    "guided": [*TIED, "--guided-alignment=align"],
    "smaller_decoder": [*TIED, "--transformer-decoder-dim-ffn=64"],
    "pre_norm": [*TIED, *PRE_NORM],
    "pre_norm_ssru": [*TIED, *PRE_NORM, *SSRU],
}
HELD = sorted(FORMS.keys() - {"pre_norm", "pre_norm_ssru"})  # by the format


class Marian:
    """Marian's command in a folder with data and vocabularies."""

    def __init__(self, folder):
        pytest.importorskip("pymarian")
        self.folder, self.trained = folder, cache(self._train)
        sides = {side: lines(f"train.{side}")[:4000] for side in ("en", "de")}
        files = {**sides, "align": ["0-0"] * 4000, "t.en": [pair[0] for pair in PAIRS]}
        for name, texts in {**files, "t.de": [pair[1] for pair in PAIRS]}.items():
            (folder / name).write_text("".join(f"{text}\n" for text in texts))
        for name, texts in {**sides, "both": [*sides["en"], *sides["de"]]}.items():
            (folder / f"{name}.spm").write_bytes(sentencepiece_model(texts, "unigram", 400))

    def run(self, command, *options):
        line = [sys.executable, "-m", "pymarian", command, "--cpu-threads=2", "--quiet", *map(str, options)]
        done = subprocess.run(line, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.splitlines()

    def train(self, model, vocabularies, updates, *options):
        sizes = ["--enc-depth=2", "--dec-depth=2", "--dim-emb=64", "--transformer-dim-ffn=128"]
        batches = ["--mini-batch-words=1000", f"--after-batches={updates}", "--learn-rate=0.003"]
        batches += ["--lr-warmup=20", "--sync-sgd", "--overwrite", "--seed=7", "-w", 500]
        data = ["--train-sets", "en", "de", "-v", *vocabularies, "--dim-vocabs", 400, 400]
        fixed = ["--type=transformer", "--transformer-heads=4", *sizes, *batches, *data]
        self.run("train", "-m", model, *fixed, *options)

    def _train(self, form, updates=30):
        """Returns the model and its vocabularies, once for each form."""
        model = self.folder / f"{form}-{updates}.npz"
        names = ["en.spm", "de.spm"] if form == "two_vocabularies" else ["both.spm"] * 2
        vocabularies = [self.folder / name for name in names]
        self.train(model, vocabularies, updates, *FORMS[form])
        return model, vocabularies

    def scores(self, model, vocabularies):
        return [*map(float, self.run("score", "-m", model, "-v", *vocabularies, "-t", "t.en", "t.de"))]

    def outputs(self, beam, normalize, model, vocabularies):
        settings = ["-b", beam, f"--normalize={normalize}", "-i", "t.en", "--mini-batch=1"]
        return self.run("decode", "-m", model, "-v", *vocabularies, *settings)


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return Marian(tmp_path_factory.mktemp("marian"))


def imported(out, model, vocabularies, settings=""):
    import_model(model, out, "translate_en_de", vocabularies)
    return Translator.load(out, decode_hparams=settings)


def same_scores(translator, expected):
    found = [score.log_prob for score in translator.score(PAIRS)]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_scores(marian, tmp_path, form):
    model = marian.trained(form)
    same_scores(imported(tmp_path / "out", *model), marian.scores(*model))


@pytest.mark.parametrize("form", HELD)
def test_greedy_outputs_and_their_greatest_lengths(marian, tmp_path, form):
    """Marian 1.12 itself decodes models with pre-norm by other keys than it trains and scores them with."""
    model = marian.trained(form)
    ours = imported(tmp_path / "out", *model, "beam_size=1,normalize=0").translate([en for en, _ in PAIRS])
    assert ours == marian.outputs(1, 0, *model)


def test_beams(marian, tmp_path):
    """Marian's beam narrows as hypotheses end: what differs has a better score here."""
    model = marian.trained("tied", 200)
    translator = imported(tmp_path / "out", *model, "beam_size=4,normalize=0.6")
    ours = translator.translate([en for en, _ in PAIRS])
    theirs = marian.outputs(4, 0.6, *model)
    others = [number for number, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other]
    assert len(others) <= 20
    for number in others:
        pairs = [(PAIRS[number][0], output[number]) for output in (ours, theirs)]
        own, other = (
            score.log_prob / (1 + len(translator.vocabularies.targets.encode(output))) ** 0.6
            for score, (_, output) in zip(translator.score(pairs), pairs, strict=True)
        )
        assert own > other - 1e-4, ours[number]


@pytest.mark.parametrize("form", HELD)
def test_a_model_goes_out_and_comes_back_as_it_was(marian, tmp_path, form):
    model, vocabularies = marian.trained(form)
    imported(tmp_path / "out", model, vocabularies)
    (export,) = exported(tmp_path / "out")
    files = sorted(export.glob("*.spm"))  # vocab.spm, or source.spm and target.spm
    assert marian.scores(export / "model.npz", [files[0], files[-1]]) == marian.scores(model, vocabularies)
    settings = ["-c", export / "decoder.yml", "-b", 1, "--normalize=0", "-i", "t.en", "--mini-batch=1"]
    assert marian.run("decode", *settings) == marian.outputs(1, 0, model, vocabularies)
    import_model(export, tmp_path / "back", "translate_en_de")
    first, second = (weights(tmp_path / name) for name in ("out", "back"))
    assert first == second


def exported(out):
    run("t2t-exporter", f"--output_dir={out}", "--format=marian")
    return [*(out / "marian").iterdir()]


def weights(out):
    arrays = StoredWeights(directory.list_checkpoints(out)[-1].path)
    return {name: array.tobytes() for name, array in arrays.items() if "seed" not in name}


def test_training_goes_on_here_and_there(marian, tmp_path):
    """After updates here Marian scores the export alike; after updates of Marian's, so does this project."""
    model, vocabularies = marian.trained("tied")
    imported(tmp_path / "out", model, vocabularies)
    data, out = tmp_path / "data", tmp_path / "more"
    flags = ["--problem=translate_en_de", "--data_source=sample", f"--data_dir={data}"]
    run(
        *("t2t-trainer", *flags, f"--output_dir={out}", f"--warm_start_from={tmp_path / 'out'}"),
        *("--train_steps=5", "--hparams=batch_size=512,effective_batch_size=0,learning_rate_warmup_steps=5"),
    )
    (export,) = exported(out)
    files = [export / "model.npz", [export / "vocab.spm"] * 2]
    translator = Translator.load(out)
    assert translator.score(PAIRS[:1]) != Translator.load(tmp_path / "out").score(PAIRS[:1])
    same_scores(translator, marian.scores(*files))
    further = tmp_path / "further.npz"
    marian.train(further, files[1], 5, *TIED, "--pretrained-model", files[0])
    same_scores(imported(tmp_path / "again", further, files[1]), marian.scores(further, files[1]))


@pytest.mark.parametrize("name", ["marian_tiny", "base"])
def test_models_of_this_project(marian, tmp_path, name):
    out = tmp_path / "out"
    flags = [f"--hparams_set={name}", f"--output_dir={out}", f"--data_dir={tmp_path / 'data'}"]
    small = "hidden_size=64,filter_size=64,num_hidden_layers=1,num_heads=2,pos=timing"
    small += ",batch_size=512,effective_batch_size=0,learning_rate_warmup_steps=20"
    run(
        "t2t-trainer",
        "--problem=translate_en_de",
        "--data_source=sample",
        "--train_steps=30",
        *flags,
        f"--hparams={small}",
    )
    (export,) = exported(out)
    files = [export / "model.npz", [export / "vocab.spm"] * 2]
    same_scores(Translator.load(out), marian.scores(*files))
    settings = "beam_size=1,alpha=0,max_length_factor=3,extra_length=512"
    ours = Translator.load(out, decode_hparams=settings).translate([en for en, _ in PAIRS])
    assert ours == marian.outputs(1, 0, *files)
