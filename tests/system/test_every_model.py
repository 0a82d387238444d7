"""One scenario for models with every kind of layer: train, decode, score, export, serve, query, convert.

The file decoder, the Python API, a served SavedModel, a SavedModel in a folder and CTranslate2 must agree;
scores must be those of the model's logits, by a softmax in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import DecodeHParams, Translator
from t2t_revival.cli import decoder, exporter, query_server, trainer
from tests.support.model_server import HOST, ModelServer, Servable, echo

pytestmark = pytest.mark.slow

PAD, EOS = 0, 1
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=512,effective_batch_size=0"
STEPS = 3
BEAM = "beam_size=2,alpha=0.6,extra_length=3"
BEST_TWO = f"--decode_hparams={BEAM},return_beams=True,write_beam_scores=True"
POST_NORM = "layer_preprocess_sequence=none,layer_postprocess_sequence=dan"  # `tiny` is pre-norm
UNSHARED = "shared_embedding_and_softmax_weights=False"
TRANSLATION, PARSING = "translate_ende", "parse_wsj"
MODELS = {  # problem, overrides, and the reason why CTranslate2 cannot hold the model
    "post-norm, target space, unshared embeddings, learned positions": (
        TRANSLATION,
        f"{POST_NORM},{UNSHARED},use_target_space_embedding=True,pos=emb,max_length=40",
        "",
    ),
    "restricted attention, unequal channels": (
        TRANSLATION,
        "attention_window=6,attention_key_channels=8",
        "does not support attention_window=6",
    ),
    "relative positions with a target space, geglu, biases, muon": (
        TRANSLATION,
        "pos=relative,use_target_space_embedding=True,ffn_activation=geglu,projection_bias=True,"
        "softmax_bias=True,optimizer=muon",
        "",
    ),
    "rotary positions, swiglu, RMS norms, unshared embeddings": (
        TRANSLATION,
        f"pos=rotary,ffn_activation=swiglu,norm_type=rms,softmax_bias=True,{UNSHARED}",
        "",
    ),
    "parser": (PARSING, "deterministic_attention=True", "does not support deterministic_attention=True"),
}
LINES = ["the dog sees 3 houses", "", "ein Hund 🦓"]
SENTENCES = {"en": "the dog sees {} houses", "de": "der Hund sieht {} Häuser"}
TREE = "(S (NP-SBJ (DT the) (NN dog)) (VP (VBZ sees) (NP (CD {}) (NNS houses))))"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sentence pairs and trees; training adds the data of all models beside it."""
    folder = tmp_path_factory.mktemp("models") / "corpus"
    folder.mkdir()
    for split, count in (("train", 40), ("dev", 4)):
        numbers = [f"{split}{number}" for number in range(count)]
        texts = {f"{split}.{language}": text for language, text in SENTENCES.items()}
        texts[f"{split}.trees"] = TREE
        for name, text in texts.items():
            lines = [text.format(number) for number in numbers]
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    server = ModelServer(echo)
    yield server
    server.close()


def run(main: Callable[[list[str]], int], *flags: str) -> None:
    assert main(["command", *flags]) == 0, flags


def log_probs(translator: Translator, source: str, target: str, without_pad: bool = False) -> np.ndarray:
    """Log-probability of each target token and EOS, from the model's logits."""
    assert translator.problem is not None
    written = translator.problem.encode_target(target)
    inputs, targets = translator.encode(source), translator.encode(written, is_output=True)
    ids = {"inputs": np.array([inputs], np.int32), "targets": np.array([targets], np.int32)}
    logits = np.asarray(translator.model(ids), np.float64)[0]
    if without_pad:
        logits[:, PAD] = -np.inf
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits[range(len(targets)), targets]


def fields(path: Path) -> tuple[list[list[str]], list[list[float]]]:
    """Texts and scores of lines of "text, score, text, score"."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    return [row[::2] for row in rows], [[float(score) for score in row[1::2]] for row in rows]


@pytest.mark.parametrize(
    "name", [next(iter(MODELS)), *(pytest.param(name, marks=pytest.mark.nightly) for name in [*MODELS][1:])]
)
def test_all_ways_to_use_a_model_agree(
    name: str, corpus: Path, server: ModelServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    problem, changes, refusal = MODELS[name]
    out = tmp_path / "model"

    # Train.
    hparams = ",".join(filter(None, (SIZES, changes)))
    flags = [f"--problem={problem}", "--hparams_set=tiny", f"--hparams={hparams}"]
    flags += [
        "--vocab_size=310",
        f"--data_source={corpus}",
        f"--data_dir={corpus.parent / 'data'}",
        f"--train_steps={STEPS}",
    ]
    run(trainer.main, *flags, f"--output_dir={out}", "--eval_bleu_sentences=0")
    translator = Translator.load(out, decode_hparams=f"{BEAM},return_beams=True")
    assert translator.checkpoint is not None
    assert translator.checkpoint.step == STEPS

    # Decode: the command and Python.
    (tmp_path / "in").write_text("\n".join([*LINES, ""]), encoding="utf-8")
    decode = [BEST_TWO, f"--decode_from_file={tmp_path / 'in'}"]
    run(decoder.main, f"--output_dir={out}", *decode, f"--decode_to_file={tmp_path / 'decoded'}")
    texts, scores = fields(tmp_path / "decoded")
    outputs = translator.nbest(LINES)
    assert texts == [[output.text for output in best] or ["", ""] for best in outputs]
    assert any(text for best in texts for text in best)

    # Score: the command and the model's logits.
    pairs = [(line, best[0]) for line, best in zip(LINES, texts, strict=True) if line]
    (tmp_path / "pairs").write_text("".join(f"{line}\t{text}\n" for line, text in pairs), encoding="utf-8")
    score = [f"--score_file={tmp_path / 'pairs'}", f"--decode_to_file={tmp_path / 'scores'}"]
    run(decoder.main, f"--output_dir={out}", *score)
    written = np.loadtxt(tmp_path / "scores", ndmin=1)
    np.testing.assert_allclose(written, [log_probs(translator, *pair).sum() for pair in pairs], atol=1e-3)

    # Export, then query a server and the folder.
    run(exporter.main, f"--output_dir={out}", f"--decode_hparams={BEAM}")
    (version,) = (path for path in (out / "export").iterdir() if path.is_dir())
    server.predict = Servable(problem, version)
    trees = [f"--problem={PARSING}"] if problem == PARSING else []  # whose outputs are tokens otherwise
    for address in (
        [f"--server={HOST}:{server.grpc_port}", f"--servable_name={problem}"],
        [f"--saved_model={out / 'export'}"],
    ):
        run(query_server.main, *address, *decode, f"--decode_to_file={tmp_path / 'answered'}", *trees)
        answered, answered_scores = fields(tmp_path / "answered")
        assert answered == texts
        for row, expected in zip(answered_scores, scores, strict=True):
            np.testing.assert_allclose(row, expected, atol=0.02)  # written with two decimals

    # Convert to CTranslate2, whose greedy outputs and probabilities are the model's.
    ctranslate2 = pytest.importorskip("ctranslate2")
    capfd.readouterr()
    status = exporter.main(["t2t-exporter", f"--output_dir={out}", "--format=ctranslate2"])
    if refusal:
        assert status == 1
        assert refusal in capfd.readouterr().err
        return
    assert status == 0
    (version,) = (out / "ctranslate2").iterdir()
    converted = ctranslate2.Translator(str(version), compute_type="float32")
    pieces = translator.vocabulary.pieces
    translator.options = DecodeHParams(beam_size=1, alpha=0.0, extra_length=3)
    for line, text in pairs:
        source = [pieces[token] for token in translator.encode(line)[:-1]]
        target = [pieces[token] for token in translator.encode(text, is_output=True)[:-1]]
        (scored,) = converted.score_batch([source], [target])
        expected = log_probs(translator, line, text, without_pad=True)
        np.testing.assert_allclose(scored.log_probs, expected, atol=2e-4)
        (found,) = converted.translate_batch([source], beam_size=1, max_decoding_length=len(source) + 1 + 3)
        ids = [token for token in translator.best_ids(translator.encode(line)) if token != EOS]
        assert found.hypotheses[0] == [pieces[token] for token in ids]
