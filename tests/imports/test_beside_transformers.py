"""transformers itself, where it is installed: ids of lines in any script, and outputs."""

import random

import numpy as np
import pytest

from t2t_revival import Translator
from t2t_revival.addons.imports.transformers import import_folder
from tests.support.marian_models import LINES, PIECES, ZIELE, write_marian_mt, write_two_vocabularies

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
RANGES = (32, 127), (160, 0x500), (0x3000, 0xA000), (0x1F300, 0x1F700), (0x2581, 0x2582), (32, 33)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_marian_mt(tmp_path_factory.mktemp("theirs"))


@pytest.fixture(scope="module")
def out(folder, tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "out"
    import_folder(folder, made)
    return made


def as_ours(ids):
    return [0 if token == PIECES - 1 else token + 1 for token in ids]


def test_ids_of_two_thousand_lines(folder, out):
    transformers = pytest.importorskip("transformers")
    draw = random.Random(1)
    strange = [
        "".join(chr(draw.randrange(*draw.choice(RANGES))) for _ in range(draw.randrange(30)))
        for _ in range(1900)
    ]
    tagged = [f"{tag}{line}" for tag in (">>deu<< ", ">>nds<<", ">>xyz<< ", ">> ", "<< ") for line in LINES]
    lines = [*LINES, *ZIELE, *tagged, *strange]
    lines = lines[:2000]
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    inputs, targets = Translator.load(out).vocabularies
    for side, theirs in ((inputs, tokenizer(lines)), (targets, tokenizer(text_target=lines))):
        assert [as_ours(ids) for ids in theirs["input_ids"]] == [[*side.encode(line), 1] for line in lines]
    ids = tokenizer(text_target=lines)["input_ids"]
    decoded = tokenizer.batch_decode(ids, skip_special_tokens=True)
    assert decoded == [targets.decode(as_ours(each)) for each in ids]


@pytest.mark.parametrize("beams", [1, 4])
def test_outputs(folder, out, beams):
    """Its search goes on to the end with early_stopping="never", as ours; by default it may stop before."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    ours = Translator.load(out, decode_hparams=f"beam_size={beams},extra_length=0")
    for line in LINES:
        ids = ours.vocabularies.inputs.encode(line)
        batch = torch.tensor([[*(token - 1 for token in ids), 0]])
        how = {"early_stopping": "never"} if beams > 1 else {}
        with torch.no_grad():
            found = model.generate(
                input_ids=batch,
                num_beams=beams,
                max_length=1 + batch.shape[1],
                length_penalty=1.0,
                bad_words_ids=[[PIECES - 1], [1]],
                forced_eos_token_id=None,
                **how,
            )
        expected = as_ours(np.asarray(found[0])[1:])
        assert ours.translate([line]) == [ours.vocabularies.targets.decode(expected)]


@pytest.mark.parametrize("tied", [True, False])
def test_two_vocabularies(tmp_path, tied):
    """Logits of all pieces but padding, and ids of both sides."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    theirs = write_two_vocabularies(tmp_path / "theirs", tied)
    import_folder(theirs, tmp_path / "out")
    ours = Translator.load(tmp_path / "out")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(theirs).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(theirs)
    source, target = tokenizer(LINES[0]).input_ids, tokenizer(text_target=ZIELE[0]).input_ids
    sides = ours.vocabularies
    assert as_ours(source) == [*sides.inputs.encode(LINES[0]), 1]
    assert as_ours(target) == [*sides.targets.encode(ZIELE[0]), 1]
    start = [PIECES - 1, *target[:-1]]
    with torch.no_grad():
        logits = model(torch.tensor([source]), decoder_input_ids=torch.tensor([start])).logits[0].numpy()
    found = ours.model({"inputs": np.array([as_ours(source)]), "targets": np.array([as_ours(target)])})
    np.testing.assert_allclose(np.asarray(found)[0, :, 1:], logits[:, :-1], atol=1e-4)
