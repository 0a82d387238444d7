"""M2M100 and NLLB of transformers: languages, vocabularies, trimming, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import T2TError, Translator
from t2t_revival.addons.imports.kinds import M2M100 as KIND
from t2t_revival.addons.imports.kinds import kind_to_import
from t2t_revival.addons.imports.languages import language_piece
from t2t_revival.addons.imports.m2m100 import Pair, import_folder
from tests.support.commands import run
from tests.support.line_corpus import write_pairs
from tests.support.m2m100_models import M2M100, NLLB, NLLB_LANGUAGES, pieces, write_multilingual
from tests.support.marian_models import LINES, ZIELE

FIRST = 4 + len(pieces())  # row of the first language
ENGLISH, GERMAN = FIRST + 18, FIRST + 16  # of M2M100's hundred


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("theirs")
    return {kind: write_multilingual(base / kind, kind) for kind in (M2M100, NLLB)}


@pytest.fixture(scope="module")
def models(folders, tmp_path_factory):
    base = tmp_path_factory.mktemp("models")
    for kind, folder in folders.items():
        import_folder(folder, base / kind, Pair("translate_en_de"))
    return base


def rows_of(vocabulary, ids):
    """The rows of the embeddings there."""
    return [vocabulary.marian_ids[vocabulary.pieces[token]] for token in ids]


@pytest.mark.parametrize(
    ("kind", "source", "target"), [(M2M100, ENGLISH, GERMAN), (NLLB, FIRST + 2, FIRST + 1)]
)
def test_languages_stand_where_the_tokenizer_puts_them(models, kind, source, target):
    inputs, targets = Translator.load(models / kind).vocabularies
    assert rows_of(inputs, inputs.encode(LINES[0]))[0] == source
    ids = targets.encode(ZIELE[0])
    assert rows_of(targets, ids)[0] == target
    assert ids[0] == targets.first
    assert targets.decode([*ids, 1]) == ZIELE[0]
    assert rows_of(inputs, [0, 1]) == [1, 2]  # <pad>, </s>


@pytest.mark.parametrize("kind", [M2M100, NLLB])
def test_outputs_begin_with_the_language_and_do_not_show_it(models, kind):
    translator = Translator.load(models / kind, decode_hparams="beam_size=2,extra_length=3")
    targets = translator.vocabularies.targets
    outputs = translator.translate([*LINES, ""])
    assert outputs[-1] == ""
    assert not any(targets.pieces[targets.first] in output for output in outputs)


def test_legacy_behaviour_puts_the_language_after_eos(tmp_path):
    folder = write_multilingual(tmp_path / "theirs", NLLB, legacy=True)
    import_folder(folder, tmp_path / "out", Pair("translate_en_de"))
    inputs, targets = Translator.load(tmp_path / "out").vocabularies
    *_, end, language = rows_of(inputs, [*inputs.encode(LINES[0]), 1])
    assert (end, language) == (2, FIRST + 2)
    assert rows_of(targets, [*targets.encode(ZIELE[0]), 1])[-1] == 2


@pytest.mark.parametrize(
    ("code", "piece"),
    [
        ("en", "eng_Latn"),
        ("deu", "deu_Latn"),
        ("fin_Latn", "fin_Latn"),
        ("zh_Hans", "zho_Hans"),
        ("fi", "fin_Latn"),
    ],
)
def test_codes_of_languages(code, piece):
    assert language_piece(code, NLLB_LANGUAGES, "source_language") == piece


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("zh", "'zh' has several scripts in the model: give --source_language=zho_Hans or zho_Hant"),
        ("fim_Latn", "--source_language: unknown language of the model 'fim_Latn'; did you mean fin_Latn"),
        ("xx", "--source_language: unknown language of the model 'xx'; known: ace_Arab, deu_Latn"),
    ],
)
def test_languages_that_the_model_lacks_are_named(code, message):
    with pytest.raises(T2TError, match=message):
        language_piece(code, NLLB_LANGUAGES, "source_language")


@pytest.mark.parametrize("kind", [M2M100, NLLB])
def test_a_trimmed_model_has_the_logits_of_the_whole_one(folders, models, tmp_path, kind):
    (tmp_path / "text").write_text("\n".join([*LINES[:2], *ZIELE[:2]]) + "\n")
    pair = Pair("translate_en_de", keep_vocab_of=str(tmp_path / "text"))
    (note,) = import_folder(folders[kind], tmp_path / "out", pair).notes
    whole, small = Translator.load(models / kind), Translator.load(tmp_path / "out")
    (inputs, targets), (few_in, few_out) = whole.vocabularies, small.vocabularies
    assert few_in.size < inputs.size - 6
    assert note.startswith(f"kept {few_in.size:,} of ")
    for line, target in zip(LINES[:2], ZIELE[:2], strict=True):
        ids, out = [*inputs.encode(line), 1], [*targets.encode(target), 1]
        own, own_out = [*few_in.encode(line), 1], [*few_out.encode(target), 1]
        assert rows_of(few_in, own) == rows_of(inputs, ids)
        assert rows_of(few_out, own_out) == rows_of(targets, out)
        logits = np.asarray(whole.model({"inputs": np.array([ids]), "targets": np.array([out])}))[0]
        places = [inputs.pieces.index(piece) for piece in few_in.pieces]
        found = np.asarray(small.model({"inputs": np.array([own]), "targets": np.array([own_out])}))[0]
        np.testing.assert_allclose(found, logits[:, places], atol=1e-5)
    unseen = [piece for piece in pieces() if piece not in few_in.pieces and len(piece) > 2]
    assert unseen
    for piece in unseen:  # which is cut into pieces that are there
        text = piece.replace("▁", " ").strip()
        assert few_in.unknown not in few_in.encode(text)
        assert few_in.decode(few_in.encode(text)) == text
    assert few_in.unknown in few_in.encode("猫")  # a script that the text has not
    assert few_in.unknown not in few_in.encode("wir")


OTHER_MODELS = [
    (
        {"architectures": ["M2M100Model"]},
        r"\['M2M100Model'\], not M2M100ForConditionalGeneration: not supported",
    ),
    ({"activation_function": "gelu"}, "activation_function='gelu' is not supported, but 'relu'"),
    ({"decoder_start_token_id": 0}, "decoder_start_token_id=0 is not supported, but 2"),
    ({"vocab_size": 170}, "the tokenizer has .* vocab_size=170: they are of two models; get the model again"),
    ({"pad_token_id": 0}, "pad_token_id=0 is not <pad>, which is 1: the tokenizer is of another model"),
    ({"d_model": 32}, r"shared.weight has the shape \(\d+, 16\); vocabulary and settings require"),
    ({"encoder_layers": 3}, "the weights lack encoder.layers.2.self_attn"),
]


@pytest.mark.parametrize(("changes", "message"), OTHER_MODELS)
def test_other_models_are_refused(tmp_path, changes, message):
    folder = write_multilingual(tmp_path / "theirs", M2M100, changes)
    with pytest.raises(T2TError, match=message):
        import_folder(folder, tmp_path / "out", Pair("translate_en_de"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sentencepiece.bpe.model", r"sentencepiece\.bpe\.model: No such file"),
        ("model.safetensors", "there is neither model.safetensors nor pytorch_model.bin"),
        ("tokenizer.json", "no list of languages, neither in tokenizer.json nor in special_tokens_map.json"),
    ],
)
def test_missing_files_are_named(folders, tmp_path, name, message):
    folder = shutil.copytree(folders[NLLB], tmp_path / "theirs")
    (folder / name).unlink()
    with pytest.raises(T2TError, match=message):
        import_folder(folder, tmp_path / "out", Pair("translate_en_de"))
    assert not (tmp_path / "out").exists()


def test_text_to_keep_that_is_missing_is_named(folders, tmp_path):
    pair = Pair("translate_en_de", keep_vocab_of=str(tmp_path / "none"))
    with pytest.raises(T2TError, match=r"--keep_vocab_of takes text files or a data_source: .*no such"):
        import_folder(folders[M2M100], tmp_path / "out", pair)
    assert not (tmp_path / "out").exists()


def test_shards(folders, models, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(folders[M2M100], tmp_path / "theirs")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    halves = [*weights][::2], [*weights][1::2]
    index = {}
    for number, names in enumerate(halves, 1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: weights[name] for name in names}, folder / file)
        index |= dict.fromkeys(names, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    import_folder(folder, tmp_path / "out", Pair("translate_en_de"))
    assert (tmp_path / "out/model.ckpt-0.npz").read_bytes() == (
        models / M2M100 / "model.ckpt-0.npz"
    ).read_bytes()
    (folder / file).unlink()
    with pytest.raises(T2TError, match=f"{file}: No such file"):
        import_folder(folder, tmp_path / "other", Pair("translate_en_de"))


def test_their_kind(folders):
    assert {kind_to_import(folder) for folder in folders.values()} == {KIND}


@pytest.mark.slow
def test_commands(folders, tmp_path):
    """Import of a pair with its vocabulary trimmed, training on, decoding, and refused flags."""
    out, corpus, data = tmp_path / "out", tmp_path / "corpus", tmp_path / "data"
    pairs = [*zip(LINES, ZIELE, strict=True)]
    write_pairs(corpus, {"train": pairs, "dev": pairs})
    importing = "t2t-import-checkpoint", f"--checkpoint={folders[M2M100]}", f"--output_dir={out}"
    with pytest.raises(AssertionError, match="a model of many languages: give --problem, such as"):
        run(*importing)
    done = run(*importing, "--problem=translate_en_de", f"--keep_vocab_of={corpus}")
    assert "hparams_set: m2m100, but with" in done.stdout
    vocabulary = out / "vocab.translate_en_de.marian"
    run(
        *("t2t-trainer", "--problem=translate_en_de", "--hparams_set=m2m100", f"--output_dir={out}"),
        *(f"--data_source={corpus}", f"--data_dir={data}", f"--vocab_file={vocabulary}", "--train_steps=2"),
    )
    assert (out / "model.ckpt-2.npz").exists()
    (tmp_path / "lines").write_text("\n".join(LINES) + "\n")
    decoded = tmp_path / "decoded"
    run(
        "t2t-decoder",
        f"--output_dir={out}",
        f"--decode_from_file={tmp_path / 'lines'}",
        f"--decode_to_file={decoded}",
    )
    assert len(decoded.read_text().splitlines()) == len(LINES)
    more = f"--data_source={corpus}", f"--data_dir={tmp_path / 'more'}", f"--vocab_file={vocabulary}"
    with pytest.raises(AssertionError, match="is of M2M100 or NLLB and cannot grow: leave it out"):
        run("t2t-datagen", "--problem=translate_en_de", *more, "--update_vocab")


CPUINFO = Path("/proc/cpuinfo")  # without VNNI, sums of int8 lose up to 2%
VNNI = not CPUINFO.exists() or "vnni" in CPUINFO.read_text()


@pytest.mark.parametrize("kind", [M2M100, NLLB])
@pytest.mark.parametrize(
    ("way", "tolerance"),
    [
        ({"engine": "ctranslate2"}, 0.2),  # its softmax leaves out padding, which random weights make likely
        ({"engine": "ctranslate2", "precision": "int8"}, 0.5 if VNNI else 5.0),
        ({"precision": "bfloat16"}, 0.5),
    ],
    ids=["ctranslate2", "int8", "bfloat16"],
)
def test_engines_and_precisions_score_alike_and_do_not_show_the_language(models, kind, way, tolerance):
    if "engine" in way:
        pytest.importorskip("ctranslate2")
    usual = Translator.load(models / kind)
    other = Translator.load(models / kind, decode_hparams="beam_size=2,extra_length=3", **way)
    pairs = list(zip(LINES, ZIELE, strict=True))
    expected, found = ([score.log_prob for score in one.score(pairs)] for one in (usual, other))
    np.testing.assert_allclose(found, expected, atol=tolerance)
    targets = usual.vocabularies.targets
    outputs = [output.text for row in other.nbest(LINES, 2) for output in row]
    assert any(outputs)
    assert not any(targets.pieces[targets.first] in output for output in outputs)
