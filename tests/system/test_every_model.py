"""Models with every kind of layer are trained, decoded, exported and queried by the commands.

Their searches, scores and conversions are compared with the model's logits in tests/decoding.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run

pytestmark = pytest.mark.slow
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=512,effective_batch_size=0"
DECODE = "--decode_hparams=beam_size=2,alpha=0.6,extra_length=3"
TRANSLATION, PARSING = "translate_ende", "parse_wsj"
MODELS = {  # problem and hparams
    "post-norm, target space, unshared embeddings, learned positions": (
        TRANSLATION,
        "layer_preprocess_sequence=none,layer_postprocess_sequence=dan,pos=emb,max_length=40,"
        "shared_embedding_and_softmax_weights=False,use_target_space_embedding=True",
    ),
    "restricted attention, unequal channels": (TRANSLATION, "attention_window=6,attention_key_channels=8"),
    "relative positions with a target space, geglu, biases, muon": (
        TRANSLATION,
        "pos=relative,use_target_space_embedding=True,ffn_activation=geglu,projection_bias=True,"
        "softmax_bias=True,optimizer=muon",
    ),
    "rotary positions, swiglu, RMS norms, recurrent decoder": (
        TRANSLATION,
        "pos=rotary,ffn_activation=swiglu,norm_type=rms,decoder_self_attention=ssru",
    ),
    "parser": (PARSING, "deterministic_attention=True"),
}
LINES = ["the dog sees 3 houses", "", "ein Hund 🦓"]
TEXTS = {
    "en": "the dog sees {} houses",
    "de": "der Hund sieht {} Häuser",
    "trees": "(S (NP-SBJ (DT the) (NN dog)) (VP (VBZ sees) (NP (CD {}) (NNS houses))))",
}


@pytest.mark.parametrize(
    "name", [next(iter(MODELS)), *(pytest.param(name, marks=pytest.mark.nightly) for name in [*MODELS][1:])]
)
def test_an_export_has_the_outputs_of_the_trained_model(name: str, tmp_path: Path) -> None:
    problem, hparams = MODELS[name]
    for split, count in (("train", 40), ("dev", 4)):
        for suffix, text in TEXTS.items():
            lines = "".join(f"{text.format(f'{split}{number}')}\n" for number in range(count))
            (tmp_path / f"{split}.{suffix}").write_text(lines, encoding="utf-8")
    (tmp_path / "in").write_text("\n".join([*LINES, ""]), encoding="utf-8")
    out = f"--output_dir={tmp_path / 'model'}"
    data = [f"--data_source={tmp_path}", f"--data_dir={tmp_path / 'data'}", "--vocab_size=310"]
    how = ["--hparams_set=tiny", f"--hparams={SIZES},{hparams}", "--train_steps=3", "--eval_bleu_sentences=0"]
    run("t2t-trainer", f"--problem={problem}", out, *data, *how)
    asked = [DECODE, f"--decode_from_file={tmp_path / 'in'}"]
    run("t2t-decoder", out, *asked, f"--decode_to_file={tmp_path / 'decoded'}")
    run("t2t-exporter", out, DECODE)
    trees = [f"--problem={PARSING}"] if problem == PARSING else []  # whose outputs are tokens otherwise
    served = [f"--saved_model={tmp_path / 'model' / 'export'}", f"--decode_to_file={tmp_path / 'answered'}"]
    run("t2t-query-server", *asked, *served, *trees)
    decoded = (tmp_path / "decoded").read_text(encoding="utf-8")
    assert (tmp_path / "answered").read_text(encoding="utf-8") == decoded
    assert decoded.count("\n") == len(LINES)
    assert decoded.strip()
