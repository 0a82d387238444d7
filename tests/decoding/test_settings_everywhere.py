"""Each setting of decoding changes what comes back, or is refused by name, wherever it can be given."""

import io
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partialmethod
from importlib.util import find_spec
from types import SimpleNamespace
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from starlette.testclient import TestClient

from t2t_revival import DecodeHParams, HParams, T2TError, Transformer, Translator
from t2t_revival.addons.ctranslate2.served import TranslatorModel
from t2t_revival.addons.litert import MODEL
from t2t_revival.addons.server.app import create_app
from t2t_revival.addons.server.versions import AVAILABLE, ServedModel, Version
from t2t_revival.checkpoints import directory
from t2t_revival.cli import attention, exporter
from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.engines import jax_engine
from t2t_revival.decoding.files.part_file import OutputStream
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.decoding.holders import Holder
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.options import SETTINGS
from t2t_revival.serving.module import ServingModule
from t2t_revival.utils import keras_config
from tests.contract.decoding import PIECES, TREES, copied, folder_of
from tests.support.exported import asking
from tests.support.searches import ensemble
from tests.support.setting_values import NEED, values_of

HPARAMS = HParams(
    num_hidden_layers=1, hidden_size=64, filter_size=64, num_heads=2, pos="timing", softmax_bias=True
)
HEADS = AlignmentHeads(1, (2,), shifted=False)
LINES = ["a <b>é</b>", "e\u0301. A dog", "dog dog"]
BASE = "beam_size=2,extra_length=3"
OF_ARGOS = "Argos Translate has its own, beside which a model's usual ones are ignored"
IGNORED = {("argos_format", name): OF_ARGOS for name in ("beam_size", "alpha", "normalize")}
IGNORED["jax", "constrained"] = "it warns: a parser's problem repairs trees"
IGNORED["parser", "early_stopping"] = "the search is the engine's; these few words are found either way"
LINES_ALONE = {"translations", "score_lines", "text_lines"}  # what is written of an engine's outputs


class Model:
    """A SavedModel before it is saved."""

    where = "export"

    def __init__(self, translator):
        self._functions = ServingModule(translator, heads=HEADS).signatures
        self.signature_defs = {
            name: SimpleNamespace(inputs={spec.name: spec for spec in function.input_signature})
            for name, function in self._functions.items()
        }

    def predict(self, signature, inputs):
        specs = self.signature_defs[signature].inputs
        given = {name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()}
        return {name: value.numpy().tolist() for name, value in self._functions[signature](**given).items()}


class Doors:
    """Wherever settings can be given: called with them, each returns what comes back."""

    def __init__(self, folder):
        self.answer = cache(lambda door, given, as_json: getattr(self, door)(given, as_json))
        self._folder, self._made = copied(PIECES, folder), cache(self._make)
        translator = Translator.load(self._folder)
        self._vocabulary, self._problem = translator.vocabulary, translator.problem
        weights = directory.model_arrays(self._made())
        directory.save(self._folder / "model.ckpt-2.npz", weights, {"step": 2})
        HPARAMS.save(self._folder)
        self._served = cache(lambda: Model(self._translator(BASE)))
        self._converted = cache(lambda: TranslatorModel(self._of_ctranslate2(BASE)))

    def _make(self, seed=24, **changes):
        with mock.patch("tensorflow.random.set_seed"):  # which takes SentencePiece from other graphs
            keras.utils.set_random_seed(seed)
        model = Transformer(HPARAMS.replace(**changes), self._vocabulary.size)
        embedding = model.target_embedding
        embedding.embeddings.assign(embedding.embeddings * 3)
        embedding.softmax_bias.assign(8.0 * np.eye(self._vocabulary.size)[EOS])  # so that some outputs end
        return model

    def _translator(self, given, model=None, heads=HEADS):
        options, model = DecodeHParams.parse(given), model or self._made()
        return Translator(model, self._vocabulary, options, 30, problem=self._problem, alignment_heads=heads)

    def _of_ctranslate2(self, given):
        return Translator.load(self._folder, decode_hparams=given, engine="ctranslate2")

    def tensorflow(self, given, as_json):
        return eagerly(lambda: written(self._translator(given), as_json))

    def ensemble(self, given, as_json):
        capabilities.check(DecodeHParams.parse(given).asked(), capabilities.ENSEMBLE)  # as `load_translator`
        both = ensemble(self._made(), self._made(seed=14))
        return eagerly(lambda: written(self._translator(longer(given), both, None), as_json))

    def no_self_attention(self, given, as_json):
        model = self._made(decoder_self_attention="ssru")
        return eagerly(lambda: written(self._translator(longer(given), model, None), as_json))

    def parser(self, given, as_json):
        free = f"constrained=False,{given}".removeprefix("constrained=False," * ("constrained" in given))
        return written(Translator.load(folder_of(TREES), None, longer(free)), as_json)

    def jax(self, given, as_json):
        def program(model, run, num_arrays):
            return lambda *arguments: [np.asarray(each) for each in run(*arguments)]

        with (
            mock.patch.object(keras_config, "backend", return_value="jax"),
            mock.patch.object(jax_engine, "JaxProgram", program),
        ):
            return self.tensorflow(given, as_json)

    def ctranslate2(self, given, as_json):
        return written(self._of_ctranslate2(given), as_json)

    def saved_model(self, given, as_json):
        return written(asking(Model(self._translator(given))), as_json)

    def request(self, given, as_json):
        return written(asking(self._served(), given), as_json)

    def server(self, given, as_json):
        return posted(self._served(), given)

    def server_of_ctranslate2(self, given, as_json):
        return posted(self._converted(), given)

    def attention_page(self, given, as_json):
        page, pages = self._folder / "page.html", []
        for line in (*LINES, "the dog sees the house . a cat"):
            flags = [f"--output_dir={self._folder}", f"--html={page}", f"--input={line}"]
            run(attention, *flags, f"--decode_hparams={given}")
            pages.append(page.read_bytes())
        return pages

    def _export(self, given, as_json, kind):
        folder = self._folder / "export"
        shutil.rmtree(folder, ignore_errors=True)
        flags = [f"--output_dir={self._folder}", f"--export_dir={folder}", f"--format={kind}"]
        given = given.replace("extra_length=3", "extra_length=50")  # bergamot's format has the default
        said = run(exporter, *flags, f"--decode_hparams={given}")
        files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        if MODEL in files:
            search = tf.lite.Interpreter(model_content=files.pop(MODEL)).get_signature_runner()
            found = search(inputs=np.array([[*self._vocabulary.encode(LINES[2]), EOS]], np.int32))
            files |= {name: value.tobytes() for name, value in found.items()}
        return re.sub(r"\d{9,}", "VERSION", said), files

    litert = partialmethod(_export, kind="litert")
    ctranslate2_format = partialmethod(_export, kind="ctranslate2")
    transformers_format = partialmethod(_export, kind="transformers")
    argos_format = partialmethod(_export, kind="argos")
    bergamot_format = partialmethod(_export, kind="bergamot")


def longer(given):
    """Adds a length penalty for models whose outputs are empty without one."""
    return given if re.search("alpha=|normalize=|min_length", given) else f"{given},alpha=3"


def eagerly(function):
    """Calls a function without graphs, which take longer to make than these few steps to compute."""
    tf.config.run_functions_eagerly(True)
    try:
        return function()
    finally:
        tf.config.run_functions_eagerly(False)


def written(translator, as_json):
    """Returns what commands write of the lines, and how many lines each batch leaves."""
    translator.checkpoint = SimpleNamespace(name="model.ckpt-1")
    stream, done = io.BytesIO(), []
    output = OutputStream(stream, "the standard output")
    translate_lines(
        translator, Lines(LINES), output, Report("lines", on_progress=done.append), as_json=as_json
    )
    return stream.getvalue(), [progress.done for progress in done]


def posted(model, given):
    options = DecodeHParams.parse(given)
    names = [part.partition("=")[0] for part in given.split(",")]
    served = ServedModel("model", None, versions={1: Version(1, model, AVAILABLE)})
    with TestClient(create_app({"model": served})) as client:
        request = {"text": LINES, "options": {name: getattr(options, name) for name in names}}
        answer = client.post("/translate", json=request)
    if answer.status_code != 200:
        raise T2TError(answer.text)
    return answer.json()


def run(command, *flags):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        if command.main(["command", *flags]):
            raise T2TError(err.getvalue())
    return out.getvalue()


DOORS = [name for name in vars(Doors) if not name.startswith("_")]


def cases():
    for door in DOORS:
        holder = Holder.__members__.get(door.upper(), Holder.REQUEST)
        for name, about in SETTINGS.items():
            is_quick = door in ("request", "server") or holder not in about.held_by
            marks = [] if is_quick and "_ctranslate2" not in door else [pytest.mark.slow]
            yield pytest.param(door, name, marks=marks, id=f"{name}-{door}")


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    return Doors(tmp_path_factory.mktemp("doors"))


def test_each_holder_has_a_door():
    assert {holder.name.lower() for holder in Holder} - {*DOORS} == LINES_ALONE


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("door", "name"), cases())
def test_a_setting_is_used_or_refused(doors, door, name):
    if "ctranslate2" in door and not find_spec("ctranslate2"):
        pytest.skip("needs CTranslate2")
    needed = NEED.get(name, "")
    base = ",".join(
        part for part in f"{BASE},{needed}".split(",") if part and not part.startswith(f"{name}=")
    )
    for value in values_of(name):
        given = f"{base},{name}={value}"
        DecodeHParams.parse(given)  # no other fault is taken for a refusal
        for as_json in (True, False):
            try:
                answer = doors.answer(door, given, as_json)
            except T2TError as refusal:
                known = [name, *re.findall(r"(\w+)=", needed)]
                assert any(one in str(refusal) for one in known), f"{door} and {name}: {refusal}"  # noqa: PT017
                return
            if answer != doors.answer(door, base, as_json):
                return
    assert (door, name) in IGNORED, f"{door} accepts {name} and ignores it"
