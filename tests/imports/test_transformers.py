"""MarianMT folders of transformers: the same logits, outputs and ids here; bad folders are refused."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from t2t_revival import HParams, T2TError, Translator
from t2t_revival.addons.imports.hub import is_complete
from t2t_revival.addons.imports.transformers import import_folder
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.model.embedding import sinusoids
from tests.support.commands import run
from tests.support.line_corpus import write_pairs
from tests.support.marian_models import (
    LINES,
    PIECES,
    reference,
    reference_weights,
    write_marian_mt,
    write_two_vocabularies,
)

PAD = PIECES - 1


def as_ours(ids):
    """Marian's ids are ours without PAD, which is its last one."""
    return np.where(ids == PAD, 0, ids + 1)


@pytest.fixture
def folder(tmp_path):
    return write_marian_mt(tmp_path / "theirs")


@pytest.fixture
def out(folder, tmp_path):
    import_folder(folder, tmp_path / "out")
    return tmp_path / "out"


def logits(out):
    known = reference()
    model = Translator.load(out).model
    return np.asarray(model({"inputs": as_ours(known["sources"]), "targets": as_ours(known["targets"])}))


def test_logits_are_those_of_transformers(out):
    known = reference()
    expected = known["logits"][:, :, [PAD, *range(PAD)]]
    is_token = known["targets"] != PAD
    np.testing.assert_allclose(logits(out)[is_token], expected[is_token], atol=1e-5)


def test_tables_of_positions_tell_their_kind(out, tmp_path):
    """A table of the weights is the paper's, or that of T2T and Marian; any other is learned."""
    places = np.arange(64, dtype=np.float32)
    paper = np.asarray(sinusoids(places, 16))
    tables = {
        "sinusoid": np.concatenate([paper[:, ::2], paper[:, 1::2]], axis=1),
        "timing": np.asarray(sinusoids(places, 16, as_t2t=True)),
    }
    name = "model.encoder.embed_positions.weight"
    for pos, positions in tables.items():
        theirs = write_marian_mt(tmp_path / pos, weights={**reference_weights(), name: positions})
        import_folder(theirs, tmp_path / f"{pos}_out")
        assert HParams.load(tmp_path / f"{pos}_out").pos == pos
    np.testing.assert_array_equal(logits(tmp_path / "sinusoid_out"), logits(out))
    assert np.abs(logits(tmp_path / "timing_out") - logits(out)).max() > 0.1
    learned = {**reference_weights(), name: np.ones((64, 16), np.float32)}
    with pytest.raises(T2TError, match=r"embed_positions\.weight is not made of sinusoids"):
        import_folder(write_marian_mt(tmp_path / "learned", weights=learned), tmp_path / "new")


def test_an_output_dir_like_any_other(out, tmp_path):
    hparams = HParams.load(out)
    assert (hparams.encoder_layers, hparams.decoder_layers, hparams.ffn_activation) == (2, 1, "swish")
    assert (hparams.pos, hparams.projection_bias, hparams.softmax_bias) == ("sinusoid", True, True)
    translator = Translator.load(out)
    assert translator.problem.name == "translate_en_de"
    assert (translator.options.beam_size, translator.options.alpha, translator.options.normalize) == (4, 0, 1)
    (best, *_), *_ = translator.nbest(LINES[:1], n=2)
    score = translator.score([(LINES[0], best.text)])[0]
    assert score.log_prob < 0
    assert [checkpoint.step for checkpoint in checkpoints.list_checkpoints(out)] == [0]
    with pytest.raises(T2TError, match=r"is in use: it holds run\.json; use another"):
        import_folder(write_marian_mt(tmp_path / "again"), out)


def pytorch_file(path, arrays, code=None):
    """Writes a file as PyTorch does, without PyTorch: its pickle names its functions."""
    storages = list(arrays.values())

    class Tensor:
        def __init__(self, number):
            self.number = number

    class Pickler(pickle._Pickler):  # the one in Python, whose output can be written by hand
        def save_global(self, obj, name=None):
            self.write(obj.encode())

        def save(self, obj, *args, **kwargs):
            if not isinstance(obj, Tensor):
                return super().save(obj, *args, **kwargs)
            array = storages[obj.number]
            self.write(code or b"ctorch._utils\n_rebuild_tensor_v2\n")
            self.write(pickle.MARK + pickle.MARK)
            self.save("storage")
            self.write(b"ctorch\nFloatStorage\n")
            for part in (str(obj.number), "cpu", array.size):
                self.save(part)
            self.write(pickle.TUPLE + pickle.BINPERSID)
            strides = [stride // 4 for stride in array.strides]
            for part in (0, tuple(array.shape), tuple(strides), False):
                self.save(part)
            self.write(pickle.TUPLE + pickle.REDUCE)
            return None

    stream = io.BytesIO()
    Pickler(stream, protocol=2).dump({name: Tensor(number) for number, name in enumerate(arrays)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", stream.getvalue())
        for number, array in enumerate(storages):
            archive.writestr(f"archive/data/{number}", array.tobytes())


def test_pytorchs_file_is_read_without_pytorch(folder, out, tmp_path):
    (folder / "model.safetensors").unlink()
    arrays = {name: np.ascontiguousarray(array) for name, array in reference_weights().items()}
    pytorch_file(folder / "pytorch_model.bin", arrays)
    import_folder(folder, tmp_path / "other")
    np.testing.assert_array_equal(logits(tmp_path / "other"), logits(out))


def test_no_code_of_a_file_is_run(folder, tmp_path):
    """A pickle that asks for os.system gets an error, not the function."""
    (folder / "model.safetensors").unlink()
    arrays = {"a": np.ones(2, np.float32)}
    pytorch_file(folder / "pytorch_model.bin", arrays, code=b"cposix\nsystem\n")
    with pytest.raises(T2TError, match=r"it asks for posix\.system, which is no tensor; get it again"):
        import_folder(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


CONFIGS = [
    ({"model_type": "m2m_100", "architectures": ["M2M100"]}, r"a model of the kind m2m_100, \['M2M100'\]"),
    ({"architectures": 5}, "a model of the kind marian, 5, not MarianMT"),
    ({"normalize_before": True}, "normalize_before=True is not supported"),
    ({"decoder_ffn_dim": 32}, r"decoder\.layers\.0\.fc1\.weight has the shape \(24, 16\)"),
    ({"activation_function": "tanh"}, "activation_function='tanh' is not supported"),
    ({"decoder_start_token_id": 0}, "decoder_start_token_id=0 is not supported, but 119"),
    ({"d_model": None}, "d_model=None is not a whole number"),
    ({"d_model": 32}, r"shared\.weight has the shape \(120, 16\)"),
    ({"decoder_layers": 2}, "the weights lack decoder.layers.1.self_attn_layer_norm.weight"),
    ({"encoder_layers": 1}, "the model has encoder.layers.1.fc1.bias, which has no place here"),
    ({"vocab_size": 130}, "120 pieces, <pad> is 119; config.json has vocab_size=130"),
    ({"eos_token_id": 3}, "eos_token_id=3 is not </s>"),
]


@pytest.mark.parametrize(("changes", "message"), CONFIGS)
def test_models_of_other_kinds_are_refused(tmp_path, changes, message):
    with pytest.raises(T2TError, match=message):
        import_folder(write_marian_mt(tmp_path / "theirs", changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


STRANGE = [None, "a", -1, 0, 1.5, [], {}, True, 10**9]


@pytest.mark.parametrize("value", STRANGE, ids=repr)
def test_strange_settings_are_refused_before_there_is_a_model(tmp_path, value):
    """None is a setting that is left out; a model of 10**9 layers or channels would not fit in memory."""
    may_be = {"num_beams": (None, 0, True, [], {}), "scale_embedding": (None, True), "eos_token_id": (0,)}
    may_be["decoder_start_token_id"] = (None,)
    for name in {"num_beams", *json.loads(str(reference()["config"]))}:
        if repr(value) in map(repr, may_be.get(name, ())):
            continue
        theirs = write_marian_mt(tmp_path / name, {name: value})
        with pytest.raises(T2TError):
            import_folder(theirs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def truncated(path):
    path.write_bytes(path.read_bytes()[:-100])


FILES = [
    ("vocab.json", lambda path: path.write_text("[1]"), "vocab.json: corrupt, not a JSON object"),
    ("vocab.json", lambda path: path.write_text('{"<unk>": 1}'), "it lacks </s> or <unk>, or its ids"),
    ("vocab.json", lambda path: path.unlink(), "vocab.json: No such file or directory"),
    ("config.json", lambda path: path.write_text("{"), "config.json: corrupt, not JSON"),
    ("source.spm", lambda path: path.unlink(), "source.spm: No such file or directory"),
    ("source.spm", lambda path: path.write_bytes(b""), "vocab.translate_en_de.marian: corrupt"),
    ("target.spm", lambda path: path.write_bytes(b"text"), "vocab.translate_en_de.marian: corrupt"),
    ("model.safetensors", truncated, "model.safetensors: corrupt, or not a file of tensors"),
    ("model.safetensors", lambda path: path.unlink(), "neither model.safetensors nor pytorch_model.bin"),
    ("tokenizer_config.json", lambda path: path.unlink(), "give --problem, such as"),
]


@pytest.mark.parametrize(("name", "damage", "message"), FILES)
def test_damaged_folders_are_refused(folder, tmp_path, name, damage, message):
    damage(folder / name)
    with pytest.raises(T2TError, match=message):
        import_folder(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_shards_are_read_through_their_index(folder, out, tmp_path):
    whole = folder / "model.safetensors"
    names, arrays = sorted(reference_weights()), reference_weights()
    files = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(names)}
    for file in {*files.values()}:
        save_file({name: arrays[name] for name in names if files[name] == file}, folder / file)
    whole.with_name("model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    whole.unlink()
    import_folder(folder, tmp_path / "sharded")
    np.testing.assert_array_equal(logits(tmp_path / "sharded"), logits(out))
    assert is_complete(folder)
    (folder / files[names[0]]).unlink()
    assert not is_complete(folder)
    with pytest.raises(T2TError, match=r"model-00001-of-00002\.safetensors: No such file"):
        import_folder(folder, tmp_path / "new")


STARTS = [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS, .*: run git"),
    (pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2), r"before 1\.6: .* torch\.save"),
]


@pytest.mark.parametrize(("content", "message"), STARTS)
def test_files_in_need_of_another_program_are_named(folder, tmp_path, content, message):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(T2TError, match=message):
        import_folder(folder, tmp_path / "out")


@pytest.mark.parametrize("name", ["vocab.json", "source.spm", "target.spm", "model.safetensors"])
def test_pointers_in_the_place_of_files_are_named(folder, tmp_path, name):
    (folder / name).write_bytes(STARTS[0][0])
    with pytest.raises(T2TError, match=f"{name}: {STARTS[0][1]}"):
        import_folder(folder, tmp_path / "out")


def test_added_tokens_are_named(tmp_path):
    theirs = write_marian_mt(tmp_path / "theirs", {"vocab_size": PIECES + 2})
    (theirs / "added_tokens.json").write_text('{"<term>": 120, "</term>": 121}')
    with pytest.raises(T2TError, match=r"adds <term>, </term>\. .*, model\.resize_token_embeddings\(120\)"):
        import_folder(theirs, tmp_path / "out")


def test_half_precision_is_read(folder, out, tmp_path):
    weights = {name: array.astype(np.float16) for name, array in reference_weights().items()}
    import_folder(write_marian_mt(tmp_path / "half", weights=weights), tmp_path / "half_out")
    np.testing.assert_allclose(logits(tmp_path / "half_out"), logits(out), atol=0.01)


@pytest.mark.parametrize("tied", [True, False])
def test_two_vocabularies(out, tmp_path, tied):
    """Sources in another order of pieces have the same vectors; half of an embedding is half of a logit."""
    import_folder(write_two_vocabularies(tmp_path / "two", tied), tmp_path / "two_out")
    model = Translator.load(tmp_path / "two_out")
    sources, targets = model.vocabularies
    assert model.vocabularies.separate
    plain = Translator.load(out).vocabularies
    for line in LINES:
        pieces = [plain.inputs.pieces[token] for token in plain.inputs.encode(line)]
        assert [sources.pieces[token] for token in sources.encode(line)] == pieces
        assert targets.encode(line) == plain.targets.encode(line)
    known = Translator.load(out).model
    line = [*plain.inputs.encode(LINES[0]), 1]
    own = [*sources.encode(LINES[0]), 1]
    start = np.array([[5]])  # the first target is predicted from padding, which is 0 in both
    expected = np.asarray(known({"inputs": np.array([line]), "targets": start}))[0, 0, 1:]
    found = np.asarray(model.model({"inputs": np.array([own]), "targets": start}))[0, 0, 1:]
    bias = reference()["weights/final_logits_bias"][0, :PAD]
    np.testing.assert_allclose(found - bias, (0.5 if tied else 1.5) * (expected - bias), atol=1e-5)


def test_two_vocabularies_of_shared_embeddings(folder, tmp_path):
    """The tokenizer has a table of its own for targets, whose ids are rows of the one table of embeddings."""
    settings = {"source_lang": "en", "target_lang": "de", "separate_vocabs": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    table = json.loads((folder / "vocab.json").read_text())
    moved = {piece: number if number in (0, 1, PAD) else PAD + 1 - number for piece, number in table.items()}
    (folder / "target_vocab.json").write_text(json.dumps(moved))
    import_folder(folder, tmp_path / "two_out")
    model = Translator.load(tmp_path / "two_out")
    sources, targets = model.vocabularies
    names = {weight.path: np.array(weight) for weight in model.model.weights}
    own, theirs = (names[f"transformer/{side}_embedding/embeddings"] for side in ("source", "target"))
    shared = reference_weights()["model.shared.weight"].reshape(-1, 2, 8).swapaxes(1, 2).reshape(-1, 16)
    piece = sources.pieces[7]
    np.testing.assert_array_equal(own[7], shared[table[piece]])
    np.testing.assert_array_equal(theirs[targets.pieces.index(piece)], shared[moved[piece]])


def test_two_vocabularies_lack_one(tmp_path):
    theirs = write_two_vocabularies(tmp_path / "two")
    (theirs / "target_vocab.json").unlink()
    with pytest.raises(T2TError, match=r"target_vocab\.json: No such file"):
        import_folder(theirs, tmp_path / "out")


def test_a_start_that_is_not_zero_is_refused(tmp_path):
    weights = reference_weights()
    weights["model.shared.weight"][PAD] = 1
    with pytest.raises(T2TError, match="the embedding of padding, with which outputs start, is not 0"):
        import_folder(write_marian_mt(tmp_path / "theirs", weights=weights), tmp_path / "out")


@pytest.mark.slow
def test_commands(folder, tmp_path):
    """Import, make data, train on, decode, export and serve."""
    out, corpus = tmp_path / "out", tmp_path / "corpus"
    done = run("t2t-import-checkpoint", f"--checkpoint={folder}", f"--output_dir={out}")
    assert "120 subtokens in vocab.translate_en_de.marian" in done.stdout
    pairs = [*zip(LINES, LINES, strict=True)]
    write_pairs(corpus, {"train": pairs, "dev": pairs})
    run(
        *("t2t-trainer", "--problem=translate_en_de", "--hparams_set=marian_base", f"--output_dir={out}"),
        *(f"--data_source={corpus}", f"--data_dir={tmp_path / 'data'}", "--train_steps=2"),
        *("--vocab_file", str(out / "vocab.translate_en_de.marian")),
    )
    assert (out / "model.ckpt-2.npz").exists()
    run("t2t-exporter", f"--output_dir={out}", f"--export_dir={tmp_path / 'export'}", "--checkpoint=newest")
    (tmp_path / "lines").write_text("\n".join(LINES) + "\n")
    run(
        "t2t-decoder",
        f"--output_dir={out}",
        f"--decode_from_file={tmp_path / 'lines'}",
        f"--decode_to_file={tmp_path / 'o'}",
        "--checkpoint=newest",
    )
    served = run("t2t-query-server", f"--saved_model={tmp_path / 'export'}", stdin="\n".join(LINES) + "\n")
    assert served.stdout == (tmp_path / "o").read_text()
    asked = "--decode_hparams=alpha=0,beam_size=4"  # an option of the call: the export's `normalize` holds
    served = run(
        "t2t-query-server", f"--saved_model={tmp_path / 'export'}", asked, stdin="\n".join(LINES) + "\n"
    )
    assert served.stdout == (tmp_path / "o").read_text()
