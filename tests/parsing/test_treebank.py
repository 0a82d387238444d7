import gzip
import pickle
import shutil

import pytest

from t2t_revival import T2TError
from t2t_revival.parsing.treebank import MixedTrees, PennTreebank, TreesFolder, treebank, with_labels

TREE = "( (S (NP-SBJ (DT The) (NN {})) (VP (VBZ sleeps)) (. .)) )\n"


def write(path, *nouns):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(TREE.format(noun) for noun in nouns))


@pytest.fixture
def wsj(tmp_path):
    """Writes a Penn Treebank whose trees name their section."""
    for section in range(25):
        file = tmp_path / "ptb" / "wsj" / f"{section:02}" / f"wsj_{section:02}01.mrg"
        write(file, f"s{section}a", f"s{section}b")
    return tmp_path / "ptb"


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "trees" / "train.trees", "dog", "cat", "cow")
    write(tmp_path / "trees" / "dev.trees", "pig")
    return tmp_path / "trees"


def nouns(source, split):
    return [pair[0].split()[1] for pair in source.pairs(split, 0, source.count(split))]


def test_sections_2_to_21_train_22_is_dev_and_23_is_test(wsj):
    source = treebank(str(wsj))
    assert isinstance(source, PennTreebank)
    assert source.splits() == ("train", "dev", "test")
    assert nouns(source, "train") == [f"s{section}{part}" for section in range(2, 22) for part in "ab"]
    assert nouns(source, "dev") == ["s22a", "s22b"]
    assert nouns(source, "test") == ["s23a", "s23b"]
    assert treebank(str(wsj / "wsj")).count("train") == 40, "the folder of the sections serves too"


@pytest.mark.parametrize(("section", "split"), [("02", "train"), ("07", "train"), ("22", "dev")])
def test_a_missing_section_is_named_with_what_is_expected(wsj, section, split):
    shutil.rmtree(wsj / "wsj" / section)
    message = rf"wsj/{section}: no \.mrg files; sections 02 to 21, 22 and 23 are needed"
    with pytest.raises(T2TError, match=message):
        treebank(str(wsj)).count(split)


def test_pairs_are_words_and_tokens_each_with_its_space(folder):
    pairs = list(treebank(str(folder)).pairs("train", 1, 3))
    tree = "(S (NP XX XX )NP (VP XX )VP XX )S "
    assert pairs == [("The cat sleeps .", tree), ("The cow sleeps .", tree)]


def test_files_may_be_compressed_and_a_test_split_may_be_missing(folder):
    (folder / "test.trees.gz").write_bytes(gzip.compress(TREE.format("hen").encode()))
    source = treebank(str(folder))
    assert isinstance(source, TreesFolder)
    assert source.splits() == ("train", "dev", "test")
    assert nouns(source, "test") == ["hen"]


def test_labels_are_those_of_the_train_split(folder):
    with (folder / "dev.trees").open("a") as file:
        file.write("(SINV (VP (VBZ sleeps)) (NP (NN cat)))\n")
    assert treebank(str(folder)).labels() == {"S", "NP", "VP"}


def test_the_built_in_grammar():
    source = treebank("sample")
    assert (source.kind, source.name) == ("sample", "sample")
    words, tokens = next(source.pairs("dev", 0, 1))
    assert tokens.split().count("XX") == len(words.split())


def test_what_a_folder_lacks_is_named(folder):
    (folder / "dev.trees").write_text("\n")
    with pytest.raises(T2TError, match="no trees in its dev split"):
        treebank(str(folder)).count("dev")
    (folder / "train.trees").unlink()
    with pytest.raises(T2TError, match=r"train\.trees: no such file, nor train\.trees\.gz"):
        treebank(str(folder)).count("train")


def test_workers_get_a_source_without_the_trees_that_it_has_read(folder):
    source = treebank(str(folder))
    source.count("train")
    sent = pickle.loads(pickle.dumps(source))
    assert "_cache" not in vars(sent)
    assert nouns(sent, "train") == ["dog", "cat", "cow"]


def test_each_tree_of_a_mixture_comes_once_and_gold_ones_stand_evenly_between(folder, tmp_path):
    write(tmp_path / "auto" / "a.trees", *(f"a{n}" for n in range(4)))
    write(tmp_path / "auto" / "b.trees", *(f"b{n}" for n in range(2)))
    source = MixedTrees(treebank(str(folder)), [str(tmp_path / "auto" / "*.trees")], 0.0)
    found = nouns(source, "train")
    assert [noun for noun in found if noun[0] in "ab"] == ["a0", "a1", "a2", "a3", "b0", "b1"]
    assert [place for place, noun in enumerate(found) if noun in ("dog", "cat", "cow")] == [0, 3, 6]
    assert nouns(source, "dev") == ["pig"]


@pytest.mark.parametrize("share", [0.5, 0.75, 0.9])
def test_gold_trees_come_again_until_they_have_their_share(folder, tmp_path, share):
    write(tmp_path / "auto.trees", *(f"a{n}" for n in range(30)))
    found = nouns(MixedTrees(treebank(str(folder)), [str(tmp_path / "auto.trees")], share), "train")
    gold = [noun for noun in found if noun in ("dog", "cat", "cow")]
    assert len(gold) / len(found) == pytest.approx(share, abs=0.01)
    assert {gold.count(noun) for noun in ("dog", "cat", "cow")} <= {len(gold) // 3, len(gold) // 3 + 1}
    assert len(found) - len(gold) == 30


def test_a_mixtures_name_is_a_data_source(folder, tmp_path):
    write(tmp_path / "auto.trees", "ant")
    source = MixedTrees(treebank(str(folder)), [str(tmp_path / "auto.trees")], 0.9)
    again = MixedTrees.from_name(source.name)
    assert again.name == source.name
    assert nouns(again, "train") == nouns(source, "train")


def test_names_of_parsed_files_may_have_commas_and_brackets(folder, tmp_path):
    write(tmp_path / "auto[1]" / "a,b.trees", "ant")
    source = MixedTrees(treebank(str(folder)), [str(tmp_path / "auto[1]" / "a,b.trees")], 0.0)
    assert "ant" in nouns(MixedTrees.from_name(source.name), "train")


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("(S (NP XX )NP (VP XX )VP )S", "(S (NP XX )NP (VP XX )VP )S"),
        ("(S (NP (NML XX XX )NML XX )NP )S", "(S (NP XX XX XX )NP )S"),
        ("(TITLE (NP (NML XX )NML )NP )TITLE", "(NP XX )NP"),
        ("(TITLE (NP XX )NP (VP XX )VP )TITLE", None),
        ("(TITLE XX (NP XX )NP )TITLE", None),
        ("(TITLE (NP XX )NP XX )TITLE", None),
        ("(TITLE XX )TITLE", None),
    ],
)
def test_constituents_of_other_labels_give_their_place_to_their_children(tree, expected):
    found = with_labels(("words", f"{tree} "), {"S", "NP", "VP"})
    assert found == (expected and ("words", f"{expected} "))


def test_of_parsed_trees_the_treebanks_labels_are_learned(folder, tmp_path):
    (tmp_path / "auto").write_text("(TITLE (S (NP (NML (NN a)) (NN b))))\n(TITLE (NN a) (NP (NN b)))\n")
    gold = TreesFolder(folder)
    source = MixedTrees(gold, [str(tmp_path / "auto")], 0.0)
    assert source.count("train") == gold.count("train") + 1
    assert source.labels() == gold.labels()


@pytest.mark.parametrize(
    ("content", "share", "message"),
    [
        (None, 0.0, r"--auto_trees=.*/auto: no such file"),
        ("\n", 0.0, "auto: no trees there"),
        ("(TITLE (NN a) (NN b))\n", 0.0, "auto: none of its trees has the treebank's labels"),
        (TREE, 0.5, r"3 gold trees beside 1 parsed ones already are a share of 0\.75"),
        *((TREE, share, "must be at least 0 and below 1") for share in (1.0, -0.1, float("nan"))),
    ],
)
def test_what_is_no_mixture(folder, tmp_path, content, share, message):
    if content:
        (tmp_path / "auto").write_text(content)
    with pytest.raises(T2TError, match=message):
        MixedTrees(TreesFolder(folder), [str(tmp_path / "auto")], share).count("train")
    with pytest.raises(T2TError, match="--auto_trees is missing"):
        MixedTrees.from_name("sample")
