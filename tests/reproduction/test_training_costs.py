"""Table 2."""

import dataclasses
import shutil

import numpy as np
import pytest
from matplotlib.figure import Figure

from t2t_revival import registry
from t2t_revival.data.vocabulary import fingerprint
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.reproduction import training_costs
from t2t_revival.reproduction.layer_points import device
from t2t_revival.reproduction.runs import Outputs
from t2t_revival.reproduction.training_costs import SYSTEMS, counted_flops, flops_by_time, training_flops
from t2t_revival.training.checkpoint_file import save
from t2t_revival.training.run import Run

VOCAB = 11


def by_hand(h: HParams, sentences: int, source: int, target: int) -> int:
    """Each product of the model, multiplied out: [a, b] x [b, c] takes 2 a b c, its gradients twice that."""
    d, k, v, f = h.hidden_size, h.key_channels, h.value_channels, h.filter_size
    encoder_layer = [
        (source, d, k + k + v),  # queries, keys and values
        (source, k, source),  # scores of all heads: h times d_k channels
        (source, source, v),  # weighted values
        (source, v, d),  # output
        (source, d, f),
        (source, f, d),
    ]
    decoder_layer = [
        (target, d, k + k + v),
        (target, k, target),
        (target, target, v),
        (target, v, d),
        (target, d, k),  # queries to the encoder
        (source, d, k + v),  # its keys and values
        (target, k, source),
        (target, source, v),
        (target, v, d),
        (target, d, f),
        (target, f, d),
    ]
    products = encoder_layer * h.encoder_layers + decoder_layer * h.decoder_layers + [(target, d, VOCAB)]
    return 3 * 2 * sentences * sum(a * b * c for a, b, c in products)


SETS = {
    "plain": {"num_hidden_layers": 1},
    "uneven": {
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "attention_key_channels": 4,
        "attention_value_channels": 12,
        "layer_preprocess_sequence": "n",
        "layer_postprocess_sequence": "da",
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
    },
}


@pytest.mark.parametrize("changes", SETS.values(), ids=SETS)
def test_the_graph_of_a_training_step_has_the_products_of_the_model(tiny_hparams, changes) -> None:
    hparams = tiny_hparams.replace(**changes)
    expected = by_hand(hparams, 3, 5, 7)
    assert counted_flops(hparams, VOCAB, 15, 21, sentences=3) == expected
    assert training_flops(hparams, VOCAB, 15, 21, sentences=3) == expected


def test_what_the_formula_leaves_out_is_counted(tiny_hparams) -> None:
    hparams = tiny_hparams.replace(num_hidden_layers=1, deterministic_attention=True)
    assert counted_flops(hparams, VOCAB, 15, 21, sentences=3) > by_hand(hparams, 3, 5, 7)


def test_sentences_cost_what_they_cost_one_by_one(tiny_hparams) -> None:
    one = training_flops(tiny_hparams, VOCAB, 5, 7)
    assert training_flops(tiny_hparams, VOCAB, 50, 70, sentences=10) == pytest.approx(10 * one)
    assert training_flops(tiny_hparams, VOCAB, 50, 70) > 10 * one


def test_tokens_that_sentences_do_not_share_evenly_are_an_error(tiny_hparams) -> None:
    with pytest.raises(ValueError, match="3 sentences"):
        counted_flops(tiny_hparams, VOCAB, 15, 20, sentences=3)


def test_base_takes_six_operations_for_each_parameter_and_token_and_then_some() -> None:
    # The usual estimate: 6 x parameters that a token meets. Section 5.1's update, of sentences of one token.
    hparams = registry.hparams("base")
    d, layers = 512, 6
    encoder, decoder = 12 * d * d * layers, 16 * d * d * layers
    over_encoder = 2 * d * d * layers  # of the decoder's 16, keys and values are made of source tokens
    met = 25_000 * (encoder + over_encoder) + 25_000 * (decoder - over_encoder + 37_000 * d)
    assert training_flops(hparams, 37_000, 25_000, 25_000, 25_000) == pytest.approx(6 * met, rel=1e-3)


@pytest.mark.parametrize(("hours", "flops"), [(12, 3.3e18), (3.5 * 24, 2.3e19)])
def test_the_paper_s_rule_gives_the_paper_s_figures(hours, flops) -> None:
    # 8 P100 of 9.5 TFLOP/s (section 5.2, footnote 5)
    assert f"{flops_by_time(hours, 8, 9.5e12):.1e}" == f"{flops:.1e}"


def test_the_paper_s_rows() -> None:
    assert {system.name: dataclasses.astuple(system)[1:5] for system in SYSTEMS} == {
        "ByteNet": (23.75, None, None, None),
        "Deep-Att + PosUnk": (None, 39.2, None, 1.0e20),
        "GNMT + RL": (24.6, 39.92, 2.3e19, 1.4e20),
        "ConvS2S": (25.16, 40.46, 9.6e18, 1.5e20),
        "MoE": (26.03, 40.56, 2.0e19, 1.2e20),
        "Deep-Att + PosUnk Ensemble": (None, 40.4, None, 8.0e20),
        "GNMT + RL Ensemble": (26.30, 41.16, 1.8e20, 1.1e21),
        "ConvS2S Ensemble": (26.36, 41.29, 7.7e19, 1.2e21),
        "Transformer (base model)": (27.3, 38.1, 3.3e18, 3.3e18),
        "Transformer (big)": (28.4, 41.8, 2.3e19, 2.3e19),
    }


@pytest.fixture
def counted(monkeypatch) -> list[tuple]:
    """What is counted; by formula, since the models of the paper are large."""
    calls: list[tuple] = []

    def formula(*shape) -> float:
        calls.append(shape)
        return training_flops(*shape)

    monkeypatch.setattr(training_costs, "counted_flops", formula)
    monkeypatch.setattr(training_costs, "sustained_rate", lambda size: 2e11)
    return calls


def cells(table) -> dict[str, dict]:
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_base_and_big_are_counted_beside_the_paper_s_rule(tmp_path, counted) -> None:
    rows = cells(training_costs.table(tmp_path, "cpu", [], lambda news: None))
    base, big = rows["Transformer (base model)"], rows["Transformer (big)"]
    assert (base["updates"], base["hours"]) == (100_000, 12)
    assert base["time x devices x rate"] == pytest.approx(12 * 3600 * 8 * 9.5e12)
    assert base["counted from the graph"] == pytest.approx(100_000 * training_flops(*counted[0]))
    assert 0.2 < base["rate used"] < 0.5
    assert big["counted from the graph"] > 8 * base["counted from the graph"]
    assert rows["ByteNet"]["counted from the graph"] is None
    assert [shape[1:] for shape in counted] == [(37_000, 25_000, 25_000, 1_000)] * 2


def test_what_was_counted_is_not_counted_again(tmp_path, counted) -> None:
    tables = [training_costs.table(tmp_path, "cpu", [], lambda news: None) for _ in range(2)]
    assert len(counted) == 2
    assert tables[0] == tables[1]


@pytest.fixture
def trained(tmp_path, tiny_hparams, subwords_file):
    """An output_dir whose data is gone."""
    place = tmp_path / "run"
    tiny_hparams.save(place)
    shutil.copy(subwords_file, place)
    run = Run("translate_ende", "tiny", "/gone", subwords_file.name, fingerprint(subwords_file), {})
    run.save(place)
    seen = {"target_tokens": 1500, "source_tokens": 1000, "examples": 200, "seconds": 7200.0}
    save(
        place / "model.ckpt-9.npz",
        {"model/w": np.zeros(1, np.float32)},
        {"step": 9, "seen": seen, "replicas": 4},
    )
    return place


@pytest.fixture
def outputs(tmp_path) -> Outputs:
    """All as it should be."""
    for name in ("out", "ref"):
        (tmp_path / name).write_text("a dog runs over the green field\n")
    return Outputs(tmp_path / "out", tmp_path / "ref", "test")


def test_a_training_has_its_row(trained, outputs, tmp_path, counted, tiny_hparams) -> None:
    table = training_costs.table(tmp_path, "cpu", [(trained, outputs)], lambda news: None)
    row = cells(table)["run: translate_ende, tiny"]
    assert row["time x devices x rate"] == pytest.approx(4 * 2 * 3600 * 2e11)
    assert row["updates"] == 9
    assert row["target tokens"] == 1500
    assert (row["BLEU"], row["of split"]) == (100.0, "test")
    # 200 pairs of 5 and 7.5 tokens
    pieces = counted[-1][1]
    expected = 200 * training_flops(tiny_hparams, pieces, 5, 7.5)
    assert row["counted from the graph"] == pytest.approx(expected)
    assert device() in "\n".join(table.remarks)
    picture = tmp_path / "table2.png"
    training_costs.draw(table, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_legend_covers_no_point(tmp_path, counted, monkeypatch) -> None:
    """Trainings of a small machine are far to the left of the paper's, wherever their BLEU is."""
    drawn = []
    save_figure = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, *a, **k: drawn.append(figure) or save_figure(figure, *a, **k)
    )
    training_costs.draw(training_costs.table(tmp_path, "cpu", [], lambda news: None), tmp_path / "table2.png")
    (figure,) = drawn
    (axes,) = figure.axes
    legends = [*figure.legends, *filter(None, [axes.get_legend()])]
    assert [text.get_text() for text in legends[0].get_texts()] == [
        "EN-DE, paper",
        "EN-FR, paper",
        "here, counted",
    ]
    assert not legends[0].get_window_extent().overlaps(axes.get_window_extent())


def test_a_checkpoint_that_does_not_say_what_it_has_seen_is_an_error(
    trained, outputs, tmp_path, counted
) -> None:
    save(trained / "model.ckpt-10.npz", {"model/w": np.zeros(1, np.float32)}, {"step": 10})
    with pytest.raises(T2TError, match=r"model.ckpt-10.npz: does not say what it was trained on"):
        training_costs.table(tmp_path, "cpu", [(trained, outputs)], lambda news: None)


def test_a_folder_without_a_training_is_an_error(tmp_path, outputs, counted) -> None:
    with pytest.raises(T2TError, match="no trained model"):
        training_costs.table(tmp_path, "cpu", [(tmp_path / "none", outputs)], lambda news: None)


def test_an_unknown_scale_names_the_near_ones(tmp_path) -> None:
    with pytest.raises(T2TError, match="did you mean paper"):
        training_costs.table(tmp_path, "papers", [], lambda news: None)


def test_a_damaged_line_is_made_again(tmp_path, counted) -> None:
    training_costs.table(tmp_path, "cpu", [], lambda news: None)
    path = tmp_path / training_costs.FILE_NAME
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][:-30] + "x"]) + "\n")
    training_costs.table(tmp_path, "cpu", [], lambda news: None)
    assert len(counted) == 3
    assert path.read_text().splitlines() == lines


def test_the_rate_of_this_machine_is_measured() -> None:
    assert 1e6 < training_costs.sustained_rate(64) < 1e16
