"""Wherever settings of decoding can be given, with one model behind all of these doors."""

import io
import re
import shutil
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache, partialmethod
from types import SimpleNamespace
from unittest import mock

import keras
import numpy as np
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
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.serving.module import ServingModule
from t2t_revival.utils import keras_config
from tests.contract.decoding import PIECES, TREES, copied, folder_of
from tests.support.exported import asking
from tests.support.searches import ensemble

HPARAMS = HParams(
    num_hidden_layers=1, hidden_size=64, filter_size=64, num_heads=2, pos="timing", softmax_bias=True
)
HEADS = AlignmentHeads(1, (2,), shifted=False)
LINES = ["a <b>é</b>", "e\u0301. A dog", "dog dog"]
BASE = "beam_size=2,extra_length=3"


class Model:
    """A SavedModel before it is saved."""

    where = "export"

    def __init__(self, translator, heads=HEADS):
        self._functions = ServingModule(translator, heads=heads).signatures
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

    def __init__(self, folder, origin=None, **changes):
        self._hparams = HPARAMS.replace(**changes)
        self.answer = cache(lambda door, given, as_json: getattr(self, door)(given, as_json))
        self._folder, self._made = origin or copied(PIECES, folder), cache(self._make)
        translator = Translator.load(self._folder)
        self._vocabulary, self._problem = translator.vocabulary, translator.problem
        weights = directory.model_arrays(self._made())
        directory.save(self._folder / "model.ckpt-2.npz", weights, {"step": 2})
        self._hparams.save(self._folder)
        self._served = cache(lambda: Model(self._translator(BASE)))
        self._converted = cache(lambda: TranslatorModel(self._of_ctranslate2(BASE)))

    def _make(self, seed=24, **changes):
        with mock.patch("tensorflow.random.set_seed"):  # which takes SentencePiece from other graphs
            keras.utils.set_random_seed(seed)
        model = Transformer(self._hparams.replace(**changes), self._vocabulary.size)
        embedding = model.target_embedding
        embedding.embeddings.assign(embedding.embeddings * 3)
        if model.hparams.softmax_bias and model.hparams.shared_embedding_and_softmax_weights:
            embedding.softmax_bias.assign(
                8.0 * np.eye(self._vocabulary.size)[EOS]
            )  # so that some outputs end
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
        with on_jax():
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
    marian_format = partialmethod(_export, kind="marian")
    bergamot_format = partialmethod(_export, kind="bergamot")


@contextmanager
def on_jax():
    """Decodes as on JAX, whose programs run here as they are."""

    def program(model, run, num_arrays):
        def call(*arguments):
            return [np.asarray(each) for each in run(*arguments)]

        call.compile = lambda *arguments: None
        return call

    with (
        mock.patch.object(keras_config, "backend", return_value="jax"),
        mock.patch.object(jax_engine, "JaxProgram", program),
    ):
        yield


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
