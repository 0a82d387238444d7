"""Exports as MarianMT folders: what came from one comes back; a model of our own comes back as it was."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from t2t_revival import HParams, T2TError, Transformer, Translator
from t2t_revival.addons.formats import FORMATS
from t2t_revival.addons.imports.transformers import import_folder
from t2t_revival.addons.transformers_format import write_transformers
from t2t_revival.decoding.capabilities import check_held
from tests.support.marian_models import LINES, reference_weights, write_marian_mt

ABOUT = "Trained with care."
SIZES = {"num_hidden_layers": 1, "hidden_size": 16, "filter_size": 24, "num_heads": 2}
SOURCE = np.array([[5, 9, 3, 1, 0], [7, 2, 2, 8, 1]])
TARGETS = np.array([[4, 6, 1, 0], [9, 3, 10, 1]])


def files(folder):
    return {name: (folder / name).read_bytes() for name in ("source.spm", "target.spm")}


def test_what_came_from_transformers_comes_back(tmp_path):
    theirs = write_marian_mt(tmp_path / "theirs")
    import_folder(theirs, tmp_path / "out")
    write_transformers(Translator.load(tmp_path / "out"), tmp_path / "back", ABOUT)
    weights, back = reference_weights(), load_file(tmp_path / "back" / "model.safetensors")
    assert weights.keys() == back.keys()
    assert [name for name in weights if weights[name].tobytes() != back[name].tobytes()] == []
    assert files(theirs) == files(tmp_path / "back")
    configs = [json.loads((folder / "config.json").read_text()) for folder in (theirs, tmp_path / "back")]
    known = {name: value for name, value in configs[0].items() if name != "num_beams"}
    assert known == {name: configs[1][name] for name in known}
    tables = [json.loads((folder / "vocab.json").read_text()) for folder in (theirs, tmp_path / "back")]
    assert tables[0] == tables[1]
    generation = json.loads((tmp_path / "back" / "generation_config.json").read_text())
    assert (generation["num_beams"], generation["length_penalty"]) == (4, 1.0)
    assert generation["bad_words_ids"] == [[1], [119]]
    assert "{" not in (card := (tmp_path / "back" / "README.md").read_text())
    assert "Translates en to de. Trained with care." in card


@pytest.mark.parametrize(
    "changes",
    [
        {"pos": "timing", "ffn_activation": "swish", "projection_bias": True, "softmax_bias": True},
        {"pos": "sinusoid", "ffn_activation": "gelu", "num_decoder_layers": 2},
    ],
)
def test_a_model_of_ones_own_comes_back(vocabulary, tmp_path, changes):
    """Biases that it has not are 0 there; padding has no vector, and is never produced."""
    model = Transformer(HParams(**SIZES, norm_epsilon=1e-5, **changes), vocabulary.size)
    write_transformers(Translator(model, vocabulary), tmp_path / "theirs", ABOUT)
    tokenizer = tmp_path / "theirs" / "tokenizer_config.json"
    named = json.loads(tokenizer.read_text())
    assert (named["clean_up_tokenization_spaces"], named["split_special_tokens"]) == (False, True)
    assert (named["pad_token"], named["eos_token"], named["unk_token"]) == ("<pad>", "</s>", "<unk>")
    import_folder(tmp_path / "theirs", tmp_path / "out", "translate_en_de")
    again = Translator.load(tmp_path / "out")
    inputs = {"inputs": SOURCE, "targets": TARGETS}
    found, expected = (np.asarray(each(inputs))[..., 1:] for each in (again.model, model))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.asarray(again.model(inputs))[..., 0].max() < -9000
    line = "The old dog"
    assert again.vocabularies.inputs.encode(line) == vocabulary.encode(line)


REFUSED = [
    ({"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}, "layer_preprocess_sequence=n"),
    ({"pos": "rotary"}, "pos=rotary"),
    ({"ffn_activation": "swiglu"}, "ffn_activation=swiglu"),
    ({"decoder_self_attention": "ssru"}, "decoder_self_attention=ssru"),
    ({"shared_embedding_and_softmax_weights": False}, "shared_embedding_and_softmax_weights=False"),
]


@pytest.mark.parametrize(("changes", "shown"), REFUSED)
def test_what_it_cannot_hold_is_refused(changes, shown):
    with pytest.raises(T2TError, match=f"does not support {shown}, .* it holds models such as marian_base"):
        check_held(HParams(**SIZES, **changes), FORMATS["transformers"].place)


DIFFICULT = [
    *("Bonjour !", "Qui ? Moi .", "do n't , he 's", "a  b   c", "a\tb", "a\N{NO-BREAK SPACE}! b"),
    *("x</s>y", "a <pad> b", "<unk> q", "\N{FULLWIDTH LATIN SMALL LETTER A}", "\N{GRINNING FACE} x", ""),
]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("line", DIFFICULT)
def test_transformers_decodes_what_is_here(vocabulary, tmp_path, line):
    """Its clean-up before 4.45 and special tokens in texts change nothing."""
    transformers = pytest.importorskip("transformers")
    model = Transformer(HParams(**SIZES, pos="timing"), vocabulary.size)
    write_transformers(Translator(model, vocabulary), tmp_path / "theirs", ABOUT)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    ids = tokenizer(line)["input_ids"]
    assert ids == [*vocabulary.encode(line), 1]
    assert tokenizer.decode(ids, skip_special_tokens=True) == line


@pytest.mark.slow
@pytest.mark.nightly
def test_transformers_itself(vocabulary, tmp_path):
    """It loads what is exported, and finds the same outputs; its tokenizer the same ids."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    changes = {"pos": "timing", "norm_epsilon": 1e-5, "softmax_bias": True}
    model = Transformer(HParams(**SIZES, **changes), vocabulary.size)
    for weight in model.trainable_weights:
        weight.assign(weight + 0.3 * np.random.default_rng(1).normal(size=weight.shape))
    write_transformers(Translator(model, vocabulary), tmp_path / "theirs", ABOUT)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "theirs").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    import_folder(tmp_path / "theirs", tmp_path / "out", "translate_en_de")
    ours = Translator.load(tmp_path / "out", decode_hparams="normalize=1.0,extra_length=0")
    assert tokenizer(LINES)["input_ids"] == [[*ours.vocabularies.inputs.encode(line), 1] for line in LINES]
    for line in LINES:
        batch = tokenizer([line], return_tensors="pt")
        with torch.no_grad():
            length = 1 + batch["input_ids"].shape[1]
            settings = {"num_beams": 4, "length_penalty": 1.0, "forced_eos_token_id": None}
            found = theirs.generate(**batch, max_length=length, **settings)
        assert ours.translate([line]) == tokenizer.batch_decode(found, skip_special_tokens=True)
