import pytest

from t2t_revival import HParams, T2TError, Text2TextProblem, registry
from tests.support.line_corpus import write_pairs

PAIRS = {
    "train": [(f"a dog sees {n} cats", f"ein Hund sieht {n} Katzen") for n in range(100)],
    "dev": [("a cat", "eine Katze"), (" two  ▁ spaces ", "\ttab"), ("", "leer"), ("a dog", "ein Hund")],
}


class TranslateEnxx(Text2TextProblem):
    source_lang, target_lang = "en", "xx"


@pytest.fixture
def corpus(tmp_path):
    return write_pairs(tmp_path / "corpus", PAIRS, ("en", "xx"))


@pytest.fixture
def made(corpus, tmp_path):
    """A problem and its data_dir."""
    problem = TranslateEnxx(data_source=str(corpus), vocab_size=300)
    assert not problem.has_data(tmp_path / "data")
    metadata = problem.generate_data(str(tmp_path / "data"))
    assert problem.has_data(str(tmp_path / "data"))
    assert metadata == problem.open(tmp_path / "data").metadata
    return problem, tmp_path / "data"


def test_the_name_is_t2ts():
    assert TranslateEnxx().name == TranslateEnxx().dataset_filename() == "translate_enxx"


def test_defaults_are_the_papers_for_translation():
    problem = TranslateEnxx()
    assert problem.decode_hparams() == {"beam_size": 4, "alpha": 0.6, "extra_length": 50}
    assert problem.eval_metrics() == ("loss", "perplexity", "accuracy", "bleu", "chrf")
    assert problem.hparams(HParams()) == HParams()


def test_the_dataset_is_what_was_encoded(made):
    problem, data = made
    vocabulary = problem.open(data).vocabularies.inputs
    examples = list(problem.dataset("dev", data).as_numpy_iterator())
    assert examples[0]["inputs"].tolist() == [*vocabulary.encode("a cat"), 1]
    assert examples[0]["targets"].tolist() == [*vocabulary.encode("eine Katze"), 1]
    assert str(examples[0]["inputs"].dtype) == "int32"
    assert len(list(problem.dataset("train", data))) == 100


def test_both_features_share_one_vocabulary(made):
    problem, data = made
    encoders = problem.feature_encoders(data)
    assert set(encoders) == {"inputs", "targets"}
    assert encoders["inputs"] is encoders["targets"]
    assert encoders["inputs"].size == 300


def test_missing_data_names_the_command(tmp_path):
    with pytest.raises(T2TError, match=r"no data for translate_enxx in .*: run t2t-datagen"):
        TranslateEnxx().dataset("train", tmp_path)


def test_a_split_that_does_not_exist_is_an_error_only_when_asked_for(made):
    problem, data = made
    with pytest.raises(T2TError, match="has no test split; it has train, dev"):
        problem.dataset("test", data)


@pytest.mark.parametrize(
    ("kind", "pairs", "size"),
    [
        ("tfds", 100, 37_000),
        ("sample", 100_000, 1_000),
        ("folder", 499_999, 8_000),
        ("hf", 499_999, 8_000),
        ("folder", 500_000, 16_000),
        ("folder", 2_000_000, 37_000),
    ],
)
def test_the_default_vocabulary_follows_the_corpus(kind, pairs, size):
    problem = registry.problem("translate_ende")
    assert problem.default_vocab_size(kind, pairs) == size


class UsrSmall(TranslateEnxx):
    @property
    def approx_vocab_size(self):
        return 310


@pytest.mark.parametrize("asked", [0, 300])
def test_a_size_of_the_class_goes_before_the_corpus_and_the_flag_before_both(asked, corpus, tmp_path):
    metadata = UsrSmall(data_source=str(corpus), vocab_size=asked).generate_data(tmp_path / "data")
    assert metadata.vocab_size == (asked or 310)


@pytest.mark.parametrize("kind", ["folder", "sample", "tfds"])
def test_a_subclass_of_a_built_in_problem_has_its_own_size(kind):
    base = type(registry.problem("translate_ende"))
    small = type("UsrSmallEnde", (base,), {"approx_vocab_size": 512})
    assert small().default_vocab_size(kind, 100) == 512


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "its class must set source_lang and target_lang, or override make_source"),
        ({"source_lang": "en"}, "its class must set source_lang and target_lang"),
        ({"generate_samples": None}, "generate_samples is tensor2tensor's method; define make_source"),
    ],
)
def test_a_class_that_does_not_say_what_it_reads(attributes, message, corpus, tmp_path):
    bare = type("TranslateEnxx", (Text2TextProblem,), attributes)
    with pytest.raises(T2TError, match=message):
        bare(data_source=str(corpus)).generate_data(tmp_path / "data")
