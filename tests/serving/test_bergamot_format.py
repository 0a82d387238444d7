"""Models for bergamot-translator: what is written reads back as the same model, and its engine runs it."""

import json
import struct
from itertools import pairwise

import keras
import numpy as np
import pytest
import sentencepiece

from t2t_revival import DecodeHParams, HParams, T2TError, Transformer, Translator, registry
from t2t_revival.addons.bergamot_format import write_bergamot
from t2t_revival.addons.formats import FORMATS
from t2t_revival.addons.imports.marian import import_model
from t2t_revival.addons.shortlist import Translations
from t2t_revival.data.vocabulary.marian import MarianVocabulary
from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD, Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.capabilities import check_held
from tests.support import bergamot
from tests.support.marian_models import LINES, vocabulary_content

TEXT = [f"the {noun} sees {number} houses" for noun in ("dog", "cat") for number in range(9)]
WANTED = [f"houses: {number} by the {noun}" for noun in ("dog", "cat") for number in range(9)]
SIZES = {"num_hidden_layers": 1, "hidden_size": 64, "filter_size": 64, "num_heads": 2, "pos": "timing"}
PAIRS = {"inputs": np.array([[45, 9, 13, 99, 1]]), "targets": np.array([[104, 6, 81, 1]])}
FILES = {"config.yml", "index.html", "model.ende.intgemm8.bin", "registry.json", "vocab.ende.spm"}


def translator_of(vocabulary, **hparams):
    """A translator with weights that int8 holds exactly: multiples of 1/127 of the largest."""
    model, random = Transformer(HParams(**{**SIZES, **hparams}), vocabulary.size), np.random.default_rng(1)
    for weight in model.weights:
        steps = random.integers(-127, 128, weight.shape)
        steps.flat[0] = 127
        scale = 127 * 16 if "embedding" in weight.path else 127 * 2
        weight.assign(steps / scale + (1 if "gamma" in weight.path else 0))
    embeddings = np.array(model.target_embedding.embeddings)
    embeddings[PAD] = 0
    model.target_embedding.embeddings.assign(embeddings)
    return Translator(model, vocabulary, problem=registry.problem("translate_ende"))


def items(content):
    """Arrays of Marian's binary format by name, as float32, matrices in their usual layout."""
    version, count = struct.unpack_from("<QQ", content)
    assert version == 1
    headers = [struct.unpack_from("<4Q", content, 16 + 32 * number) for number in range(count)]
    place, names, shapes, arrays = 16 + 32 * count, [], [], {}
    for length, *_ in headers:
        names.append(content[place : place + length - 1].decode())
        place += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", content, place))
        place += 4 * dimensions
    place += 8 + struct.unpack_from("<Q", content, place)[0]
    for name, (_, kind, _, size), shape in zip(names, headers, shapes, strict=True):
        assert place % 256 == 0
        data, count = content[place : place + size], int(np.prod(shape))
        place += size
        if kind == 0x404:
            arrays[name] = np.frombuffer(data, np.float32, count).reshape(shape)
            continue
        arrays[name] = np.frombuffer(data, np.int8, count).reshape(shape)
        if kind == 0x4101:
            scale = np.frombuffer(data, np.float32, 1, count)
            array = arrays[name] if "Wemb" in name else arrays[name].reshape(shape[::-1]).T
            arrays[name] = array / scale
    assert place == len(content)
    return arrays


def read_back(folder, to):
    """The logits of what is written, read as Marian's: settings, names and layouts are those of an import."""
    arrays = items((folder / "model.ende.intgemm8.bin").read_bytes())
    (vocabulary,) = folder.glob("vocab.*.spm")
    table = "Wemb", "decoder_ff_logit_out_b"
    assert arrays["Wemb"].shape == (312, 64)  # of 310 pieces
    assert not arrays["Wemb"][310:].any()
    assert (arrays["decoder_ff_logit_out_b"][:, [PAD, 310, 311]] < -9000).all()
    arrays |= {table[0]: arrays[table[0]][:310], table[1]: arrays[table[1]][:, :310]}
    to.mkdir()
    np.savez(to / "model.npz", **arrays)
    import_model(to / "model.npz", to / "out", "translate_ende", [vocabulary])
    return np.asarray(Translator.load(to / "out").model(PAIRS))


@pytest.mark.parametrize(
    "variation",
    [
        {},
        {"decoder_self_attention": "ssru"},
        {"ffn_activation": "swish", "projection_bias": True, "softmax_bias": True},
    ],
)
def test_what_is_written_is_the_model(vocabulary, variation, tmp_path):
    translator = translator_of(vocabulary, **variation)
    write_bergamot(translator, tmp_path / "written")
    assert {path.name for path in (tmp_path / "written").iterdir()} == FILES
    found, expected = read_back(tmp_path / "written", tmp_path / "read"), np.asarray(translator.model(PAIRS))
    np.testing.assert_allclose(found[..., 1:], expected[..., 1:], atol=2e-4)


def test_settings_and_files(vocabulary, tmp_path):
    translator = translator_of(vocabulary)
    write_bergamot(translator, tmp_path / "written")
    files = json.loads((tmp_path / "written" / "registry.json").read_text())["ende"]
    assert files["config"]["beam-size"] == translator.options.beam_size
    for part, suffix in (("model", "intgemm8.bin"), ("vocab", "spm")):
        path = tmp_path / "written" / files[part]["name"]
        assert path.name.endswith(suffix)
        assert path.stat().st_size == files[part]["size"]
    assert (tmp_path / "written" / "vocab.ende.spm").read_bytes() == vocabulary.content


def test_shortlist(vocabulary, tmp_path):
    """The list of EOS has the frequent pieces; those of other pieces their best ones, and themselves."""
    best = np.zeros((310, 3), np.int32)
    best[45] = 50, 20, 0
    frequent = np.array([260, 261], np.int32)
    write_bergamot(translator_of(vocabulary), tmp_path / "written", Translations(best, frequent, ""))
    content = (tmp_path / "written" / "lex.ende.s2t.bin").read_bytes()
    _, _, first, _, offsets, size = struct.unpack_from("<6Q", content)
    starts = struct.unpack_from(f"<{offsets}Q", content, 48)
    listed = struct.unpack_from(f"<{size}I", content, 48 + 8 * offsets)
    assert (first, offsets, starts[-1]) == (0, 311, size)
    lists = [listed[start:end] for start, end in pairwise(starts)]
    assert lists[EOS] == (EOS, 260, 261)
    assert lists[45] == (EOS, 20, 45, 50)
    assert lists[46] == (EOS, 46)


def test_two_sentencepiece_models_over_one_table(tmp_path):
    """Each side has a file and embeddings of its own, in the order of its own model; a test below runs it."""
    path = tmp_path / "vocab.translate_en_de.marian"
    path.write_bytes(vocabulary_content())
    inputs = MarianVocabulary(path)
    translator = translator_of(inputs)
    write_bergamot(translator, tmp_path / "written")
    names = {file.name for file in (tmp_path / "written").glob("*.spm")}
    assert names == {"srcvocab.ende.spm", "trgvocab.ende.spm"}
    arrays = items((tmp_path / "written" / "model.ende.intgemm8.bin").read_bytes())
    for side, stack in ((inputs, "encoder"), (inputs.of_targets, "decoder")):
        model = sentencepiece.SentencePieceProcessor(model_proto=side.model)
        pieces = map(model.id_to_piece, range(model.get_piece_size()))
        rows = [side.pieces.index(piece) for piece in pieces if piece != "<s>"]
        assert len(rows) > 50
        table = np.asarray(translator.model.target_embedding.embeddings)[rows]
        own = [number for number in range(model.get_piece_size()) if model.id_to_piece(number) != "<s>"]
        np.testing.assert_allclose(arrays[f"{stack}_Wemb"][own], table, atol=1e-6)


@pytest.fixture(scope="module")
def trained(vocabulary):
    """A translator that knows its few lines by heart."""
    hparams = HParams(**SIZES, decoder_self_attention="ssru", layer_prepostprocess_dropout=0.0)
    keras.utils.set_random_seed(1)
    model = Transformer(hparams, vocabulary.size)
    inputs, targets = (
        keras.utils.pad_sequences([[*vocabulary.encode(line), EOS] for line in lines], padding="post")
        for lines in (TEXT, WANTED)
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PAD)
    model.compile(optimizer=keras.optimizers.Adam(0.003), loss=loss)
    model.fit({"inputs": inputs, "targets": targets}, targets, batch_size=18, epochs=150, verbose=0)
    options = DecodeHParams(beam_size=1)
    return Translator(model, vocabulary, options=options, problem=registry.problem("translate_ende"))


@pytest.mark.slow
@pytest.mark.parametrize("shortlist", [False, True])
def test_its_engine(trained, shortlist, tmp_path):
    """It checks the files, and translates as the model does."""
    engine, vocabulary = bergamot.library(tmp_path), trained.vocabulary
    best = np.zeros((vocabulary.size, 1), np.int32)
    targets = np.unique(np.concatenate([vocabulary.encode(line) for line in WANTED])).astype(np.int32)
    written = tmp_path / "written"
    write_bergamot(trained, written, Translations(best, targets, "") if shortlist else None)
    expected = trained.translate(TEXT)
    assert expected == WANTED
    assert bergamot.translate(engine, written, TEXT) == expected


@pytest.mark.slow
def test_its_engine_opens_two_vocabularies(tmp_path):
    path = tmp_path / "vocab.translate_en_de.marian"
    path.write_bytes(vocabulary_content())
    write_bergamot(translator_of(MarianVocabulary(path)), tmp_path / "written")
    assert len(bergamot.translate(bergamot.library(tmp_path), tmp_path / "written", LINES)) == len(LINES)


def test_two_vocabularies_of_equal_content_have_two_tables(vocabulary, tmp_path):
    other = Vocabulary(tmp_path / "other.spm", vocabulary.content)
    model = Transformer(HParams(**SIZES), vocabulary.size, target_vocab_size=other.size)
    problem = registry.problem("translate_ende")
    translator = Translator(model, vocabulary, problem=problem, target_vocabulary=other)
    write_bergamot(translator, tmp_path / "written")
    arrays = items((tmp_path / "written" / "model.ende.intgemm8.bin").read_bytes())
    np.testing.assert_allclose(arrays["encoder_Wemb"][:310], model.source_embedding.embeddings, atol=0.01)
    np.testing.assert_allclose(arrays["decoder_Wemb"][:310], model.target_embedding.embeddings, atol=0.01)


def test_what_it_cannot_hold_is_refused(vocabulary, subwords_file, tmp_path):
    subwords = SubwordVocabulary(subwords_file)
    for changes, message in (
        ({"pos": "sinusoid"}, "pos=sinusoid, which this model has: it holds models such as marian_tiny"),
        (
            {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"},
            "does not support layer_preprocess_sequence=n",
        ),
        ({"attention_key_channels": 32}, "does not support attention_key_channels=32"),
    ):
        with pytest.raises(T2TError, match=message):
            check_held(HParams(**SIZES).replace(**changes), FORMATS["bergamot"].place)
    with pytest.raises(T2TError, match="needs multiples of 64; this model has hidden_size=32"):
        write_bergamot(translator_of(vocabulary, hidden_size=32), tmp_path / "written")
    model = translator_of(vocabulary).model
    for other, message in (
        (Translator(model, vocabulary), "languages of two letters, not none: give --t2t_usr_dir"),
        (
            Translator(model, vocabulary, problem=registry.problem("translate_hsb_de")),
            "has languages of two letters, not hsb and de",
        ),
        (
            Translator(
                Transformer(HParams(**SIZES), subwords.size),
                subwords,
                problem=registry.problem("translate_ende"),
            ),
            "Marian's vocabularies are SentencePiece's",
        ),
    ):
        with pytest.raises(T2TError, match=message):
            write_bergamot(other, tmp_path / "written")
    assert not (tmp_path / "written").exists()
