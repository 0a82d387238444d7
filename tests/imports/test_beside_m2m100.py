"""transformers' M2M100 itself, where it is installed: exports of M2M100 and NLLB, whole and trimmed."""

import random
from functools import partial

import numpy as np
import pytest

from t2t_revival import Translator
from t2t_revival.addons.imports.m2m100 import Pair, import_folder
from t2t_revival.addons.transformers_format import write_transformers
from tests.imports.test_beside_transformers import RANGES
from tests.support.m2m100_models import M2M100, NLLB, write_multilingual
from tests.support.marian_models import LINES, ZIELE

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
SPECIAL = ["x</s>y", "a <pad> b", "<unk> q", "__en__ x", "eng_Latn x", " a  b ", "a\tb", "", "▁"]


@pytest.fixture(scope="module", params=[(M2M100, False), (M2M100, True), (NLLB, False), (NLLB, True)])
def both(request, tmp_path_factory):
    """Returns how to load a model here, and its folder of transformers."""
    kind, trimmed = request.param
    folder = tmp_path_factory.mktemp("models")
    (folder / "text").write_text("\n".join([*LINES[:2], *ZIELE[:2]]), encoding="utf-8")
    pair = Pair("translate_en_de", keep_vocab_of=str(folder / "text") if trimmed else "")
    import_folder(write_multilingual(folder / "theirs", kind), folder / "out", pair)
    load = partial(Translator.load, folder / "out")
    write_transformers(load(), folder / "back", "")
    return load, folder / "back"


def test_ids_of_lines(both):
    transformers, (load, folder) = pytest.importorskip("transformers"), both
    tokenizer, (inputs, targets) = transformers.AutoTokenizer.from_pretrained(folder), load().vocabularies
    draw = random.Random(1)
    strange = [
        "".join(chr(draw.randrange(*draw.choice(RANGES))) for _ in range(draw.randrange(30)))
        for _ in range(500)
    ]
    lines = [*LINES, *ZIELE, *SPECIAL, *strange]
    theirs = tokenizer(lines)["input_ids"]
    ours = [inputs.encode(line) for line in lines]
    assert [len(ids) - 1 for ids in theirs] == [len(ids) for ids in ours]
    flat = ([token for ids in side for token in ids] for side in (ours, [ids[:-1] for ids in theirs]))
    rows = dict(zip(*flat, strict=True))
    assert [[*(rows[token] for token in ids), 2] for ids in ours] == theirs
    assert len({*rows.values()}) == len(rows)
    found = tokenizer(text_target=lines)["input_ids"]
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == [
        targets.decode(targets.encode(line)) for line in lines
    ]


def test_logits_and_outputs(both):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    (load, folder) = both
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs, targets = load().vocabularies
    batch = tokenizer(LINES[0], text_target=ZIELE[0], return_tensors="pt")
    source, target = ([[*ids, 1]] for ids in (inputs.encode(LINES[0]), targets.encode(ZIELE[0])))
    with torch.no_grad():
        start = torch.tensor([[2, *batch["labels"][0][:-1]]])
        logits = model(batch["input_ids"], decoder_input_ids=start).logits[0].numpy()
    found = np.asarray(load().model({"inputs": np.array(source), "targets": np.array(target)}))[0]
    np.testing.assert_allclose(found[:, target[0]], logits[:, batch["labels"][0]], atol=1e-5)
    np.testing.assert_allclose(np.sort(found)[:, -90:], np.sort(logits)[:, -90:], atol=1e-5)
    of_tokens = torch.log_softmax(torch.tensor(logits), -1).numpy()[range(len(logits)), batch["labels"][0]]
    (score,) = load().score([(LINES[0], ZIELE[0])])
    assert score.log_prob == pytest.approx(of_tokens[1:].sum(), abs=1e-4)  # the language costs nothing
    for beams in (1, 4):
        ours = load(decode_hparams=f"beam_size={beams},extra_length=9")
        for line in LINES:
            batch = tokenizer(line, return_tensors="pt")
            stops = {} if beams > 1 else {"early_stopping": False}
            length = 1 + batch["input_ids"].shape[1] + 9
            with torch.no_grad():
                found = model.generate(**batch, num_beams=beams, max_length=length, **stops)
            assert ours.translate([line]) == tokenizer.batch_decode(found, skip_special_tokens=True)
