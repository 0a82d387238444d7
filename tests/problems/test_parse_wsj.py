import pytest

from t2t_revival import T2TError, registry
from t2t_revival.data.config import references_path
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.problems.problem import Finished

TREES = {
    "train": [
        f"(S (NP-SBJ (DT The) (NN dog)) (VP (VBZ eats) (NP (CD {n}) (NNS cats))) (. .))" for n in range(30)
    ],
    "dev": [
        "( (S (NP (PRP It)) (VP (VBZ eats)) (. .)) )",
        "(FRAG (NP (-LRB- -LRB-) (NN cat) (-RRB- -RRB-)))",
    ],
}


@pytest.fixture
def folder(tmp_path):
    for split, trees in TREES.items():
        (tmp_path / f"{split}.trees").write_text("\n".join(trees) + "\n")
    return tmp_path


@pytest.fixture
def made(folder):
    """A problem and its data_dir."""
    problem = registry.problem("parse_wsj", data_source=str(folder), vocab_size=310)
    problem.generate_data(folder / "data")
    return problem, folder / "data"


def test_section_6_3s_settings():
    problem = registry.problem("parse_wsj")
    decode = problem.decode_hparams()
    assert (decode["beam_size"], decode["alpha"], decode["extra_length"]) == (21, 0.3, 300)
    assert problem.approx_vocab_size == 16_000
    assert registry.problem("parse_wsj_semi").approx_vocab_size == 32_000
    assert problem.eval_metrics() == ("loss", "perplexity", "accuracy", "f1")
    hparams = registry.hparams("parsing")
    assert (hparams.num_hidden_layers, hparams.hidden_size) == (4, 1024)


def test_outputs_are_measured_against_the_treebanks_own_trees(made):
    problem, data = made
    found = list(problem.open(data).references("dev"))
    assert found == [
        ("It eats .", "(S (NP (PRP It)) (VP (VBZ eats)) (. .))"),
        ("-LRB- cat -RRB-", "(FRAG (NP (-LRB- -LRB-) (NN cat) (-RRB- -RRB-)))"),
    ]
    assert [words for words, _ in found] == [words for words, _ in problem.open(data).text("dev")]


def test_where_those_trees_are_missing_the_command_that_makes_them_is_named(made):
    problem, data = made
    references_path(data, "parse_wsj", "dev").unlink()
    with pytest.raises(T2TError, match="no such file: run t2t-datagen --problem=parse_wsj "):
        list(problem.open(data).references("dev"))


def test_a_vocabulary_without_labels_is_refused_before_anything_is_trained(folder):
    data = folder / "other"
    data.mkdir()
    Vocabulary.train(["the dog eats"] * 9, data / "vocab.parse_wsj.280.spm", 280)
    problem = registry.problem("parse_wsj", data_source=str(folder), vocab_size=280)
    with pytest.raises(T2TError, match="the vocabulary lacks the piece 'XX '"):
        problem.generate_data(data)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("train", "only outputs of dev and test have references"),
        ("test", "has no test split; it has train, dev"),
    ],
)
def test_splits_without_references(made, split, message):
    problem, data = made
    with pytest.raises(T2TError, match=message):
        list(problem.open(data).references(split))


@pytest.mark.parametrize(
    ("line", "tokenized", "words"),
    [
        ("He didn't (really) sleep.", False, "He did n't -LRB- really -RRB- sleep ."),
        ("He did n't  (  sleep\t.", True, "He did n't -LRB- sleep ."),
        ("one\u00a0two", True, "one two"),
        ("don't", True, "don't"),
        ("It\u2019s \u201cfine\u201d.", False, "It 's `` fine '' ."),
        ("`` I do n't know , '' he said", False, "`` I do n't know , '' he said"),
        (" \t ", False, ""),
        ("", True, ""),
    ],
)
def test_lines_become_words(line, tokenized, words):
    assert registry.problem("parse_wsj").preprocess(line, tokenized) == words


def test_outputs_become_trees():
    problem = registry.problem("parse_wsj")
    assert problem.postprocess("It eats", "(S (NP XX )NP (VP XX )VP )S ") == Finished(
        "(S (NP (XX It)) (VP (XX eats)))"
    )
    assert problem.postprocess("It eats", "(S (NP XX ") == Finished(
        "(S (NP (XX It) (XX eats)))", repaired=True
    )
    assert problem.postprocess("It", "") == Finished("(TOP (XX It))", repaired=True)


def test_a_tree_is_drawn_where_it_fits_and_indented_where_not():
    problem = registry.problem("parse_wsj")
    tree = "(S (NP (XX It)) (VP (XX eats)))"
    assert problem.render(tree, 80).splitlines()[0].strip() == "S"
    assert "XX" not in problem.render(tree, 80)
    assert problem.render(tree, 8).split() == tree.split()


def test_text_is_not_drawn_nor_are_its_words_told_apart():
    problem = registry.problem("translate_ende")
    with pytest.raises(T2TError, match="--pretty is for trees"):
        problem.render("Hund", 80)
    with pytest.raises(T2TError, match="tokenized=True is for parsing"):
        problem.preprocess("dog", tokenized=True)


def test_parsed_sentences_are_mixed_in(folder):
    auto = folder / "auto.trees"
    auto.write_text("(SINV (S (NP (NN ant))))\n" * 5)
    problem = registry.problem(
        "parse_wsj_semi", data_source=str(folder), auto_trees=[str(auto)], gold_share=0.9, vocab_size=320
    )
    metadata = problem.generate_data(folder / "semi")
    assert metadata.splits["train"].examples == 50
    pieces = problem.open(folder / "semi").vocabularies.inputs.pieces
    assert "(S▁" in pieces
    assert "(SINV▁" not in pieces, "the treebank has none"
    again = registry.problem("parse_wsj_semi")
    assert again.open(folder / "semi").metadata == metadata, (
        "what data_dir was made from need not be said again"
    )
    other = registry.problem("parse_wsj_semi", data_source=str(folder), auto_trees=[str(auto)])
    with pytest.raises(T2TError, match=r"gold_share=0\.9, not "):
        other.open(folder / "semi")
    with pytest.raises(T2TError, match="--gold_share needs --auto_trees"):
        registry.problem("parse_wsj_semi", gold_share=0.5)


def test_a_tree_as_people_write_it_is_scored_as_the_tokens_that_are_learned():
    problem = registry.problem("parse_wsj")
    tokens = "(S (NP XX XX )NP (VP XX )VP )S "
    for tree in ("(S (NP (DT The) (NN dog)) (VP (VBZ eats)))", "(S (NP (XX The) (XX dog)) (VP (XX eats)))"):
        assert problem.encode_target(tree) == tokens
    assert problem.encode_target(problem.postprocess("The dog eats", tokens).text) == tokens
    with pytest.raises(T2TError, match="0 trees instead of one"):
        problem.encode_target(" ")
