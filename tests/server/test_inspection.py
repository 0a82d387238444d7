"""Explanations, and descriptions of the training, of a model that is served from its folder."""

import keras
import pytest

from t2t_revival import registry
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.model import Transformer
from t2t_revival.server.inspection import MAX_POINTS, ExplainRequest, Inspector
from t2t_revival.training.checkpoints.directory import Checkpoint
from t2t_revival.training.run import Run
from t2t_revival.visualization.explanation import explain
from tests.support.tiny_models import TINY

DEV = "step,target_tokens,seconds,loss,bleu,data,decoding\n"


@pytest.fixture
def translator(subwords_file, tmp_path):
    keras.utils.set_random_seed(5)
    vocabulary = SubwordVocabulary(subwords_file)
    made = Translator(Transformer(TINY, vocabulary.size), vocabulary, DecodeHParams(beam_size=2))
    made.checkpoint = Checkpoint(7, False, tmp_path / "model.ckpt-7.npz")
    return made


@pytest.fixture
def inspector(translator, tmp_path):
    Run("translate_ende", "tiny", "data", "v.subwords", "fingerprint", {}).save(tmp_path)
    return Inspector(translator, tmp_path)


def test_an_explanation_in_numbers_of_json(inspector, translator):
    answer = inspector.explain(ExplainRequest(text="the dogs", output="do, the dog"))
    expected = explain(translator, "the dogs", "do, the dog")
    assert (answer.text, answer.output) == ("the dogs", "do, the dog")
    words = [answer.output[word.start : word.end] for word in answer.output_words]
    assert words == ["do", ",", "the", "dog"]
    for word, known in zip(answer.output_words, expected.words, strict=True):
        assert word.attention == pytest.approx(known.attention, abs=1e-4)
        shown = [(one.text, one.prefix, one.probability) for one in word.alternatives]
        assert shown == [
            (one.text, one.prefix, pytest.approx(one.probability, abs=1e-4)) for one in known.alternatives
        ]


def test_the_page_of_attention(inspector):
    page = inspector.attention_page(ExplainRequest(text="the dogs", output="do, the dog"))
    assert "translate_ende, tiny, step 7" in page
    assert "do, the dog" in page


def test_outputs_of_a_parser_are_trees(translator, inspector, monkeypatch):
    monkeypatch.setattr(translator, "problem", registry.problem("parse_wsj"))
    tree = "(S (NP (XX the) (XX dogs)) (XX bark))"
    linear = "(S (NP XX XX )NP XX )S"
    asked = ExplainRequest(text="the dogs bark", output=tree)
    assert inspector.explain(asked).output.split() == linear.split()
    with pytest.raises(T2TError, match="tree"):
        inspector.explain(ExplainRequest(text="the dogs bark", output="no tree"))


def test_an_unknown_tag(inspector):
    with pytest.raises(T2TError, match="tag=<2xx> is none of the model's tags: none"):
        inspector.explain(ExplainRequest(text="the", tag="<2xx>"))


def test_a_training_without_curves(inspector, translator):
    training = inspector.training
    assert (training.problem, training.hparams_set, training.step) == ("translate_ende", "tiny", 7)
    assert training.parameters == translator.model.count_params()
    assert training.score is None
    assert training.curves == {"loss": [], "score": []}


def test_curves_and_the_best_score(inspector, tmp_path):
    rows = ["5,1000,1,4.5,10.5,a,b", "6,2000,2,3.5,12.5,a,b", "7,3000,3,3.25,12.0,a,b"]
    (tmp_path / "dev.csv").write_text(DEV + "\n".join(rows) + "\n")
    training = inspector.training
    assert training.curves["loss"] == [(1000, 4.5), (2000, 3.5), (3000, 3.25)]
    assert training.curves["score"] == [(1000, 10.5), (2000, 12.5), (3000, 12.0)]
    assert training.score
    assert training.score.model_dump() == {"name": "BLEU", "value": 12.5, "step": 6}


def test_long_curves_are_thinned(inspector, tmp_path):
    rows = [f"{step},{step * 10},1,4.5,,a,b" for step in range(1, 1001)]
    (tmp_path / "dev.csv").write_text(DEV + "\n".join(rows) + "\n")
    points = inspector.training.curves["loss"]
    assert len(points) <= MAX_POINTS
    assert points[0] == (10, 4.5)
