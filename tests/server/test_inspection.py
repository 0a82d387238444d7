"""Explanations, and descriptions of the training, of a model that is served from its folder."""

import math

import keras
import pytest

from t2t_revival import DecodeHParams, T2TError, Transformer, Translator, registry
from t2t_revival.addons.server.explanation import explain, other_words
from t2t_revival.addons.server.inspection import MAX_POINTS, ExplainRequest, Inspector
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.checkpoints.file import weights_of
from t2t_revival.checkpoints.selection import keep_best
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.evaluation.checkpoint_evaluation import Evaluations
from t2t_revival.model_folder import ModelFolder, Run
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
    return Inspector(translator, ModelFolder(tmp_path))


def test_an_explanation_in_numbers_of_json(inspector, translator):
    request = ExplainRequest(text="the dogs", output="do, the dog", word=1)
    answer = inspector.explain(request)
    hypothesis, details = explain(translator, request.text, request.output)
    assert (answer.text, answer.output) == ("the dogs", "do, the dog")
    assert [(word.start, word.end) for word in answer.words] == [*details.source_words]
    for number, (word, known) in enumerate(zip(answer.output_words, details.words, strict=True)):
        assert (word.start, word.end) == (known.start, known.end)
        assert word.probability == round(math.exp(known.log_prob), 4)
        assert word.attention == pytest.approx(details.attention[number], abs=1e-4)
        others = other_words(translator, hypothesis, details, number) if number == 1 else []
        assert [other.prefix for other in word.alternatives] == [other.prefix for other in others]


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


def write(path, translator):
    path.parent.mkdir(exist_ok=True)
    checkpoints.save(path, checkpoints.model_arrays(translator.model), {"step": 7})
    return path


ROWS = ["5,1000,1,4.5,10.5,a,b", "6,2000,2,3.5,12.5,a,b", "7,3000,3,3.25,12.0,a,b"]


def test_curves_and_the_score_of_the_step_that_is_served(inspector, translator, tmp_path):
    write(tmp_path / "model.ckpt-7.npz", translator)
    (tmp_path / "dev.csv").write_text(DEV + "\n".join(ROWS) + "\n")
    training = inspector.training
    assert training.curves["loss"] == [(1000, 4.5), (2000, 3.5), (3000, 3.25)]
    assert training.curves["score"] == [(1000, 10.5), (2000, 12.5), (3000, 12.0)]
    assert training.metric == "BLEU"
    assert training.score
    assert training.score.model_dump() == {"name": "BLEU", "value": 12.0}


def test_the_runs_metric_is_shown(inspector, translator, tmp_path):
    write(tmp_path / "model.ckpt-7.npz", translator)
    keep_best(tmp_path, {7: 3.25}, "chrf", 1)
    (tmp_path / "dev.csv").write_text(DEV.replace("loss", "chrf") + "\n".join(ROWS) + "\n")
    training = inspector.training
    assert [value for _, value in training.curves["score"]] == [4.5, 3.5, 3.25]
    assert training.metric == training.score.name == "chrF2"


@pytest.mark.parametrize("name", ["averaged/model.ckpt-7.npz", "model.ckpt-8.npz", "model.ckpt-7.npz"])
def test_a_checkpoint_that_was_not_scored_has_no_score(inspector, translator, tmp_path, name):
    """An average, a step between two evaluations, and a checkpoint that a training has removed."""
    (tmp_path / "dev.csv").write_text(DEV + "\n".join(ROWS) + "\n")
    path = tmp_path / name
    if name != "model.ckpt-7.npz":
        write(path, translator)
    translator.checkpoint = Checkpoint(7, False, path)
    assert inspector.training.score is None
    assert len(inspector.training.curves["score"]) == 3


def test_the_score_of_an_average_is_its_own(inspector, translator, tmp_path):
    (tmp_path / "dev.csv").write_text(DEV + "\n".join(ROWS) + "\n")
    path = write(tmp_path / "averaged" / "model.ckpt-7.npz", translator)
    translator.checkpoint = Checkpoint(7, True, path)
    Evaluations(tmp_path, "dev", "s").add(7, path, weights_of(path), {"loss": 3.0, "bleu": 13.25})
    assert inspector.training.score.model_dump() == {"name": "BLEU", "value": 13.25}


def test_corrupt_scores_are_none(inspector, translator, tmp_path):
    write(tmp_path / "model.ckpt-7.npz", translator)
    (tmp_path / "eval-dev.csv").write_text("step,checkpoint\nx,y\n")
    assert inspector.training.score is None


def test_long_curves_are_thinned(inspector, tmp_path):
    rows = [f"{step},{step * 10},1,4.5,,a,b" for step in range(1, 1001)]
    (tmp_path / "dev.csv").write_text(DEV + "\n".join(rows) + "\n")
    points = inspector.training.curves["loss"]
    assert len(points) <= MAX_POINTS
    assert points[0] == (10, 4.5)
