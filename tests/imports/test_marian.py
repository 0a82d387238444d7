"""Models of Marian: the same logits as of transformers, whose names differ; bad files are refused."""

import json

import numpy as np
import pytest
import sentencepiece

from t2t_revival import HParams, T2TError, Translator
from t2t_revival.addons import marian_format
from t2t_revival.addons.imports import marian_binary
from t2t_revival.addons.imports.marian import PRE_NORM, import_model
from t2t_revival.addons.imports.transformers import import_folder
from tests.support.commands import run
from tests.support.marian_models import (
    LINES,
    PIECES,
    marian_weights,
    models,
    reference_weights,
    sentencepiece_model,
    table,
    write_marian,
    write_marian_mt,
)

PROBLEM = "translate_en_de"
PAIRS = {
    "inputs": np.array([[5, 9, 3, 1, 0], [7, 2, 2, 8, 1]]),
    "targets": np.array([[4, 6, 1], [99, 3, 10]]),
}


def imported(path, out, problem=PROBLEM, vocab_files=()):
    import_model(path, out, problem, vocab_files)
    return Translator.load(out)


def test_logits_are_those_of_transformers_with_marians_positions(tmp_path):
    """Padding, which Marian has not, is never produced."""
    found = np.asarray(imported(write_marian(tmp_path / "marian"), tmp_path / "out").model(PAIRS))
    positions = np.asarray(timing(64, 16), np.float32)
    weights = {**reference_weights(), "model.encoder.embed_positions.weight": positions}
    theirs = write_marian_mt(tmp_path / "theirs", weights=weights)
    import_folder(theirs, tmp_path / "other")
    expected = np.asarray(Translator.load(tmp_path / "other").model(PAIRS))
    np.testing.assert_allclose(found[..., 1:], expected[..., 1:], atol=1e-4)  # by the norms' epsilon
    assert found[..., 0].max() < -9000


def timing(length, channels):
    """Marian's positions."""
    waves = channels // 2
    angles = np.arange(length)[:, None] * 10_000 ** -(np.arange(waves) / (waves - 1))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@pytest.mark.slow
def test_scores_are_those_of_ctranslate2s_converter(tmp_path):
    """It reads the same file, with Marian's own positions given to it, as it takes the paper's else."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    from ctranslate2.converters import MarianConverter

    file = write_marian(tmp_path / "marian")
    translator = imported(file, tmp_path / "out")
    arrays = dict(np.load(file))
    np.savez(tmp_path / "positions.npz", **arrays, Wpos=timing(256, 16).astype(np.float32))
    vocabulary = str(file.with_name("vocab.yml"))
    MarianConverter(str(tmp_path / "positions.npz"), [vocabulary] * 2).convert(str(tmp_path / "converted"))
    theirs = ctranslate2.Translator(str(tmp_path / "converted"))
    inputs, targets = translator.vocabularies
    sources = [[inputs.pieces[token] for token in inputs.encode(line)] for line in LINES]
    outputs = [[targets.pieces[token] for token in targets.encode(line)] for line in LINES]
    expected = [sum(found.log_probs) for found in theirs.score_batch(sources, outputs)]
    found = [score.log_prob for score in translator.score(list(zip(LINES, LINES, strict=True)))]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_settings(tmp_path):
    translator = imported(write_marian(tmp_path / "marian").parent, tmp_path / "out")
    hparams, options = HParams.load(tmp_path / "out"), translator.options
    assert (hparams.pos, hparams.pre_norm, hparams.norm_epsilon) == ("timing", False, 1e-6)
    assert (options.beam_size, options.alpha, options.normalize) == (6, 0.0, 0.6)
    assert (options.max_length_factor, options.extra_length) == (3.0, 512)
    assert translator.vocabularies.inputs.size == PIECES


@pytest.mark.parametrize(("factor", "extra_length"), [(2, 512), (5, 1024), (100, 10_000)])
def test_the_factor_alone_limits_outputs(tmp_path, factor, extra_length):
    file = write_marian(tmp_path / "marian")
    settings = file.with_name("decoder.yml")
    settings.write_text(f"{settings.read_text()}max-length-factor: {factor}\n")
    options = imported(file, tmp_path / "out").options
    assert (options.max_length_factor, options.extra_length) == (factor, extra_length)


def test_recurrent_decoders(tmp_path):
    """A recurrent unit stands in the place of self-attention."""
    random, arrays = np.random.default_rng(1), marian_weights()
    arrays = {name: array for name, array in arrays.items() if not name.startswith("decoder_l1_self")}
    for name in ("W", "Wf"):
        arrays[f"decoder_l1_rnn_{name}"] = random.normal(size=(16, 16)).astype(np.float32)
    for name in ("rnn_bf", "rnn_ffn_ln_scale", "rnn_ffn_ln_bias"):
        arrays[f"decoder_l1_{name}"] = random.normal(size=(1, 16)).astype(np.float32)
    settings = {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    translator = imported(write_marian(tmp_path / "marian", settings, arrays), tmp_path / "out")
    assert HParams.load(tmp_path / "out").decoder_self_attention == "ssru"
    unit = translator.model.decoder.layers[0].self_attention
    x = random.normal(size=(1, 3, 16)).astype(np.float32)
    new, forget, bias = (arrays[f"decoder_l1_rnn_{name}"] for name in ("W", "Wf", "bf"))
    state, expected = np.zeros((1, 16)), []
    for row in x[0]:
        gate = 1 / (1 + np.exp(-(row @ forget + bias)))
        state = gate * state + (1 - gate) * (row @ new)
        expected.append(np.maximum(state, 0))
    np.testing.assert_allclose(np.asarray(unit(x))[0], np.concatenate(expected), rtol=1e-4, atol=1e-5)
    assert len(translator.translate(LINES)) == len(LINES)


def test_separate_vocabularies_and_softmax(tmp_path):
    """Embeddings of each side, a softmax of its own, and vocabularies of two sizes."""
    random, arrays = np.random.default_rng(2), marian_weights()
    source, target = models()
    sizes = {"source": 70, "target": PIECES - 1}
    table_of = {"source": table(source, size=70), "target": table(target)}
    del arrays["Wemb"]
    arrays["encoder_Wemb"] = random.normal(size=(70, 16)).astype(np.float32)
    arrays["decoder_Wemb"] = random.normal(size=(PIECES - 1, 16)).astype(np.float32)
    arrays["decoder_ff_logit_out_W"] = random.normal(size=(16, PIECES - 1)).astype(np.float32)
    file = write_marian(tmp_path / "marian", {"tied-embeddings-all": False}, arrays)
    files = [file.with_name(f"{side}.yml") for side in sizes]
    for path, side in zip(files, sizes, strict=True):
        path.write_text("".join(f"{json.dumps(piece)}: {n}\n" for piece, n in table_of[side].items()))
    translator = imported(file, tmp_path / "out", vocab_files=files)
    assert [side.size for side in translator.vocabularies] == [71, PIECES]
    model = translator.model
    np.testing.assert_array_equal(model.source_embedding.embeddings[1:], arrays["encoder_Wemb"])
    np.testing.assert_array_equal(model.target_embedding.embeddings[1:], arrays["decoder_Wemb"])
    np.testing.assert_array_equal(model.softmax_embedding.embeddings[1:], arrays["decoder_ff_logit_out_W"].T)
    assert not np.asarray(model.source_embedding.embeddings[0]).any()


def test_a_sentencepiece_model_as_vocabulary(tmp_path):
    spm = sentencepiece_model([*LINES, *reversed(LINES)], "bpe", 90)
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    size, arrays = processor.get_piece_size(), marian_weights()
    arrays["Wemb"] = arrays["Wemb"][:size]
    arrays["decoder_ff_logit_out_b"] = arrays["decoder_ff_logit_out_b"][:, :size]
    file = write_marian(tmp_path / "marian", weights=arrays, spm_vocabulary=True)
    file.with_name("vocab.spm").write_bytes(spm)
    translator = imported(file, tmp_path / "out")
    assert translator.vocabularies.inputs.size == size + 1
    ids = translator.vocabularies.inputs.encode(LINES[0])
    assert ids == [token + 1 for token in processor.encode(LINES[0])]


SETTINGS = [
    ({"type": "s2s"}, "type='s2s' is not supported"),
    ({"transformer-decoder-autoreg": "average-attention"}, "autoreg='average-attention' is not supported"),
    ({"transformer-decoder-autoreg": "rnn", "dec-cell": "gru"}, "dec-cell='gru' is not supported"),
    ({"transformer-ffn-activation": "gelu"}, "transformer-ffn-activation='gelu' is not supported"),
    ({"transformer-tied-layers": [1, 1]}, "transformer-tied-layers=.* is not supported"),
    ({"transformer-preprocess": "d"}, "transformer-preprocess='d' is not supported"),
    ({"transformer-decoder-dim-ffn": 48}, r"decoder\.layers\.0\.fc1\.weight has the shape \(24, 16\)"),
    ({**PRE_NORM, "version": "v1.10.2"}, "of Marian v1.10.2, which normalises only the queries"),
    ({"transformer-preprocess": "n"}, "transformer-postprocess='dan' is not supported, but 'da'"),
    ({"right-left": True}, "right-left=True is not supported"),
    ({"enc-depth": 3}, "the weights lack encoder.layers.2.self_attn_layer_norm.weight"),
    ({"dim-emb": 32}, r"shared\.weight has the shape \(119, 16\)"),
    ({"transformer-dim-ffn": 48}, r"encoder\.layers\.0\.fc1\.weight has the shape \(24, 16\)"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS)
def test_other_models_are_refused(tmp_path, settings, message):
    with pytest.raises(T2TError, match=message):
        imported(write_marian(tmp_path / "marian", settings), tmp_path / "out")
    assert not (tmp_path / "out").exists()


ARRAYS = [
    ({"encoder_l1_self_Wx": np.ones((2, 2))}, "the model has encoder_l1_self_Wx, which has no place here"),
    ({"decoder_ff_logit_out_b": np.float32(1)}, r"final_logits_bias has the shape \(\)"),
    ({"Wpos": np.ones((2, 2))}, "the model has Wpos, which has no place here"),
    ({"Wemb": np.ones((119, 16), np.int8)}, "Wemb is of the type int8, not of floating-point numbers"),
    ({"Wemb": np.ones((90, 16))}, r"shared\.weight has the shape \(90, 16\)"),
]


@pytest.mark.parametrize(("arrays", "message"), ARRAYS)
def test_other_weights_are_refused(tmp_path, arrays, message):
    with pytest.raises(T2TError, match=message):
        imported(write_marian(tmp_path / "marian", weights={**marian_weights(), **arrays}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_binary_files(tmp_path):
    """Marian's .bin has the same tensors; those of int8 models and damaged ones are refused."""
    file = write_marian(tmp_path / "marian")
    expected = imported(file, tmp_path / "npz").score([(LINES[0], LINES[1])])
    kinds = {"float32": marian_binary.FLOAT32, "int8": marian_binary.INT8}
    items = [
        marian_binary.Item(name, kinds[array.dtype.name], array.shape, array.tobytes())
        for name, array in np.load(file).items()
    ]
    binary = file.with_suffix(".bin")
    file.unlink()
    binary.write_bytes(marian_binary.write(items))
    settings = file.with_name("decoder.yml")
    settings.write_text(settings.read_text().replace("model.npz", "model.bin"))
    assert imported(file.parent, tmp_path / "bin").score([(LINES[0], LINES[1])]) == expected
    whole = binary.read_bytes()
    packed = marian_binary.write([items[0]._replace(kind=marian_binary.INT8_MATRIX), *items[1:]])
    for content, message in ((whole[:-300], "corrupt"), (packed, "is packed or int8: give the model that")):
        binary.write_bytes(content)
        with pytest.raises(T2TError, match=message):
            imported(binary, tmp_path / "out")


def test_an_output_matrix_of_its_own_and_no_bias(tmp_path):
    arrays = marian_weights()
    arrays["decoder_ff_logit_out_Wt"] = np.random.default_rng(3).normal(size=arrays["Wemb"].shape)
    del arrays["decoder_ff_logit_out_b"]
    file = write_marian(tmp_path / "marian", {"output-omit-bias": True}, arrays)
    embedding = imported(file, tmp_path / "out").model.softmax_embedding
    found = np.asarray(embedding.embeddings)[1:]
    np.testing.assert_array_equal(found, arrays["decoder_ff_logit_out_Wt"].astype(np.float32))
    assert not np.asarray(embedding.softmax_bias)[1:].any()


def test_exported_pieces_without_an_id_are_never_produced(tmp_path):
    file = write_marian(tmp_path / "marian")
    vocabulary, processor = (
        file.with_name("vocab.yml"),
        sentencepiece.SentencePieceProcessor(model_proto=models()[1]),
    )
    piece = processor.id_to_piece(30)
    vocabulary.write_text(vocabulary.read_text().replace(json.dumps(piece, ensure_ascii=False), '"other"'))
    marian_format.write_marian(imported(file, tmp_path / "out"), tmp_path / "export")
    with np.load(tmp_path / "export" / "model.npz") as arrays:
        table, bias = arrays["decoder_Wemb"], arrays["decoder_ff_logit_out_b"][0]
    unknown = processor.unk_id()
    np.testing.assert_array_equal(table[30], table[unknown])
    assert bias[30] < -9000 < bias[unknown]


def test_damaged_and_missing_files_are_refused(tmp_path):
    def refused(message, path, problem=PROBLEM, **options):
        with pytest.raises(T2TError, match=message):
            imported(path, tmp_path / "out", problem, **options)
        assert not (tmp_path / "out").exists()

    file = write_marian(tmp_path / "marian")
    refused("a model of Marian has no languages: give --problem", file, None)
    refused("--problem=translate_ende_rev: .* give --problem=translate_de_en", file, "translate_ende_rev")
    refused("No such file", file.with_name("other.npz"))
    (file.parent / "source.spm").unlink()
    refused(r"source\.spm: No such file", file)
    write_marian(file.parent)
    for content, message in (
        ('"</s>": 0\n"<unk>": 2\n', "ids are not"),
        ("a: b: c", "not YAML"),
        ("- 1", "a map"),
        ("a:\n  b: 1\n", "not a vocabulary of Marian"),
    ):
        file.with_name("vocab.yml").write_text(content)
        refused(message, file)
    write_marian(file.parent)
    settings = file.with_name("decoder.yml")
    settings.write_text(f"{settings.read_text()}word-penalty: 0.5\n")
    refused(r"decoder\.yml: word-penalty=0\.5 is not supported, but 0", file)
    for factor in (".inf", ".nan", "-1"):
        settings.write_text(f"vocabs: [vocab.yml, vocab.yml]\nmax-length-factor: {factor}\n")
        refused("max_length_factor=.* must be between 0 and 1000", file)
    settings.unlink()
    refused("its vocabularies are not known: give --vocab_file=SOURCE,TARGET", file)
    file.write_bytes(file.read_bytes()[:-200])
    refused(r"model\.npz: corrupt, or not a file of tensors", file)
    np.savez(file, a=np.ones(2))
    refused("no model of Marian: it lacks special:model.yml", file)
    refused("0 models: give one of them", file.parent)
    for name in ("model.npz", "second.npz"):
        np.savez(file.with_name(name), **{"special:model.yml": np.ones(2, np.int8)})
    refused("2 models: give one of them", file.parent)


def test_one_vocabulary_with_embeddings_of_each_side(tmp_path):
    """Marian's tied-embeddings without tied-embeddings-all: those of sources are read too."""
    weights = marian_weights()
    shared = weights.pop("Wemb")
    weights |= {"encoder_Wemb": 2 * shared, "decoder_Wemb": shared}
    imported(write_marian(tmp_path / "marian", weights=weights), tmp_path / "out")
    names = {weight.path: np.array(weight) for weight in Translator.load(tmp_path / "out").model.weights}
    found = {name: names[f"transformer/{name}_embedding/embeddings"] for name in ("source", "target")}
    np.testing.assert_array_equal(found["source"], 2 * found["target"])


def test_the_command(tmp_path):
    file, out = write_marian(tmp_path / "marian"), tmp_path / "out"
    done = run("t2t-import-checkpoint", f"--checkpoint={file}", f"--output_dir={out}", f"--problem={PROBLEM}")
    assert "120 subtokens in vocab.translate_en_de.marian" in done.stdout
