"""Parsing by the commands: outputs are trees even with random weights."""

import dataclasses
import shutil

import keras
import pytest
from nltk.tree import Tree

from t2t_revival import HParams, Transformer, registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.cli import decoder, exporter, query_server
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.parsing.symbols import token_flags
from tests.support.commands import run
from tests.support.processes import start_command

pytestmark = pytest.mark.slow

SMALL = HParams(
    num_hidden_layers=1,
    hidden_size=8,
    filter_size=8,
    num_heads=2,
    max_length=60,
    deterministic_attention=True,
)
TREES = {
    "train": [
        f"(S (NP (DT The) (NN dog)) (VP (VBZ eats) (NP (CD {n}) (NNS cats))) (. .))" for n in range(30)
    ],
    "dev": ["(S (NP (PRP It)) (VP (VBZ eats)) (. .))", "(FRAG (NP (-LRB- -LRB-) (NN cat) (-RRB- -RRB-)))"],
}
LINES = ["It didn't eat (cats).", "", "a"]
WORDS = [["It", "did", "n't", "eat", "-LRB-", "cats", "-RRB-", "."], [], ["a"]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The output_dir of a parser with random weights."""
    root = tmp_path_factory.mktemp("trained")
    for split, trees in TREES.items():
        (root / f"{split}.trees").write_text("\n".join(trees) + "\n")
    problem = registry.problem("parse_wsj", data_source=str(root), vocab_size=310)
    problem.generate_data(root / "data")
    vocabulary = problem.open(root / "data").vocabularies.inputs
    options = {**problem.decode_hparams(), "beam_size": 2, "extra_length": 8}
    name = vocabulary.path.name
    settings = Run("parse_wsj", "parsing_small", str(root / "data"), name, vocabulary.fingerprint, options)
    ModelFolder(root / "out").save(settings, SMALL, vocabulary.path)
    keras.utils.set_random_seed(1)
    model = Transformer(SMALL, vocabulary.size)
    assert model.deterministic_attention is not None
    model.deterministic_attention.token_flags.assign(token_flags(vocabulary.pieces))
    checkpoints.save(root / "out" / "model.ckpt-7.npz", checkpoints.model_arrays(model), {"step": 7})
    (root / "in").write_text("\n".join(LINES) + "\n")
    return root / "out"


@pytest.fixture(scope="module")
def exported(trained):
    """An exported folder."""
    folder = trained.parent / "export"
    run("t2t-exporter", f"--output_dir={trained}", f"--export_dir={folder}")
    return folder


def decode(out, *arguments):
    return decoder.main(["t2t-decoder", f"--output_dir={out}", *arguments])


def leaves(lines):
    return [Tree.fromstring(line).leaves() if line else [] for line in lines]


def test_what_is_no_tree_is_repaired_and_counted(trained, capsys):
    options = "--decode_hparams=constrained=False"
    assert decode(trained, f"--decode_from_file={trained.parent / 'in'}", options) == 0
    captured = capsys.readouterr()
    assert leaves(captured.out.splitlines()) == WORDS
    assert "2 of 3 outputs were malformed and have been repaired" in captured.err


def test_pretty_draws(trained, capsys):
    assert decode(trained, f"--decode_from_file={trained.parent / 'in'}", "--pretty") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) > 8
    assert "next:" not in captured.err, "drawings are not measured"


def test_dev_with_its_f1_and_the_command_that_gives_the_same(trained, capsys):
    assert decode(trained) == 0
    captured = capsys.readouterr()
    assert "F1 " in captured.out
    assert "on dev, 2 sentences" in captured.out
    folder = trained / "decoded"
    assert (folder / "dev-7.targets").read_text().splitlines() == TREES["dev"]
    assert (folder / "dev-7.inputs").read_text().splitlines() == ["It eats .", "-LRB- cat -RRB-"]
    assert (
        f"next: t2t-parseval --predicted={folder / 'dev-7.outputs'} --gold={folder / 'dev-7.targets'}"
        in captured.out
    )


def query(exported, *arguments):
    return query_server.main(["t2t-query-server", f"--saved_model={exported}", *arguments])


def test_an_exported_parser_gives_tokens_and_the_client_the_same_trees_as_the_decoder(
    trained, exported, capsys
):
    source = f"--decode_from_file={trained.parent / 'in'}"
    assert decode(trained, source) == 0
    trees = capsys.readouterr().out
    assert query(exported, "--problem=parse_wsj", source) == 0
    assert capsys.readouterr().out == trees
    assert query(exported, "--inputs_once= It  (eats\u00a0. ") == 0
    tokens = capsys.readouterr().out.split()
    assert tokens.count("XX") == 3, "spaces of any kind and number"
    assert all(token == "XX" or token[0] in "()" for token in tokens)


def test_an_export_without_the_constraint_makes_words_too_and_the_client_counts_repairs(
    trained, tmp_path, capsys
):
    flags = [f"--output_dir={trained}", f"--export_dir={tmp_path}", "--decode_hparams=constrained=False"]
    assert exporter.main(["t2t-exporter", *flags]) == 0
    capsys.readouterr()
    outputs = []
    for text in ("It (eats .", "  It  -LRB-eats\t. "):
        assert query(tmp_path, f"--inputs_once={text}", "--decode_hparams=write_beam_scores=True") == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert query(tmp_path, "--problem=parse_wsj", f"--decode_from_file={trained.parent / 'in'}") == 0
    assert "2 of 3 outputs were malformed and have been repaired" in capsys.readouterr().err


USER_PROBLEM = """
from t2t_revival import registry
from t2t_revival.problems.parse_wsj import ParseWsj

@registry.register_problem
class ParseMine(ParseWsj):
    "A parser of one's own."
"""


def test_a_parser_of_ones_own_gives_trees_too(trained, tmp_path):
    """Runs in a process of its own, where the user's package has not been imported."""
    package = tmp_path / "my_parsers"
    package.mkdir()
    (package / "__init__.py").write_text(USER_PROBLEM)
    out = shutil.copytree(trained, tmp_path / "out")
    dataclasses.replace(Run.load(out), problem="parse_mine").save(out)
    (tmp_path / "in").write_text("It eats.\n")
    flags = f"--output_dir={out}", f"--decode_from_file={tmp_path / 'in'}"
    known = start_command(tmp_path / "known", "t2t-decoder", *flags, f"--t2t_usr_dir={package}")
    unknown = start_command(tmp_path / "unknown", "t2t-decoder", *flags)
    assert leaves(known.end().splitlines()[:1]) == [["It", "eats", "."]]
    said = unknown.end(1)
    assert "problem parse_mine" in said
    assert "give --t2t_usr_dir" in said


def test_trees_are_scored_and_what_is_none_is_named(trained, tmp_path, capsys):
    (tmp_path / "pairs").write_text("It eats.\t(S (NP (PRP It)) (VP (VBZ eats)) (. .))\nIt eats.\t(S It\n")
    assert decode(trained, f"--score_file={tmp_path / 'pairs'}") == 1
    assert f"{tmp_path / 'pairs'}, line 2: tree" in capsys.readouterr().err
    (tmp_path / "pairs").write_text("It eats.\t(S (NP (PRP It)) (VP (VBZ eats)) (. .))\n")
    assert decode(trained, f"--score_file={tmp_path / 'pairs'}") == 0
    captured = capsys.readouterr()
    assert float(captured.out) < 0
    assert "(10 tokens of 1 targets, EOS counted)" in captured.err
