import pytest

from t2t_revival import DecodeHParams, HParams, T2TError
from t2t_revival.decoding.ctranslate2_engine import check_usable
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.jax_engine import JaxEngine


def test_defaults_are_the_papers():
    h = DecodeHParams.parse("")
    assert (h.beam_size, h.alpha, h.extra_length, h.outputs) == (4, 0.6, 50, 1)


def test_a_name_that_a_problem_has_wrong():
    with pytest.raises(
        T2TError, match="of the problem: unknown decode_hparam 'beam'; did you mean beam_size"
    ):
        DecodeHParams.parse("", {"beam": 1})


def test_overrides_stand_above_the_problems_defaults():
    h = DecodeHParams.parse(
        "beam_size=8, return_beams=True,write_beam_scores=true", {"beam_size": 21, "alpha": 0.3}
    )
    assert (h.beam_size, h.alpha, h.outputs, h.write_beam_scores) == (8, 0.3, 8, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beam_sice=4", "did you mean beam_size"),
        ("beam_size=4,beam_size=5", "twice"),
        ("beam_size=four", "type int"),
        ("beam_size=0", "at least 1"),
        ("extra_length=-1", "at least 0"),
        ("batch_size=0", "at least 1"),
        ("beam_size=101", "at most 100"),
        ("extra_length=1000000000000", "at most 10000"),
        ("alpha=nan", "alpha"),
        ("alpha=inf", "alpha"),
        ("return_beams=perhaps", "type bool"),
        ("beam_size", "name=value"),
        ("sampling_method=greedy", "must be argmax or random"),
        ("sampling_temp=0.5", "sampling_temp has no effect without sampling_method=random"),
        ("sampling_keep_top_k=5", "sampling_keep_top_k has no effect without sampling_method=random"),
        ("random_seed=5", "random_seed has no effect without sampling_method=random"),
        ("sampling_method=random,sampling_temp=0", "between 0.001 and 1000"),
        ("sampling_method=random,sampling_temp=nan", "between 0.001 and 1000"),
        ("sampling_method=random,sampling_keep_top_k=0", "-1 or at least 1"),
        ("sampling_method=random,random_seed=-1", "at least 0"),
        ("early_stopping=maybe", "early_stopping"),
        ("sampling_method=random,early_stopping=True", "early_stopping has no effect with"),
        ("shortlist=by_line", "must be one of off, on"),
        ("constrained=True,extra_length=1", "extra_length=1 must be at least 2"),
        ("no_repeat_ngram_size=-1", "no_repeat_ngram_size=-1 must be between 0 and 100"),
        ("repetition_penalty=0", "repetition_penalty=0.0 must be between 0.01 and 100"),
        ("repetition_penalty=nan", "repetition_penalty=nan must be between"),
        ("min_length_ratio=2,max_length_ratio=1", "=2.0 must be at most max_length_ratio=1.0"),
        ("constrained=True,no_repeat_ngram_size=3", "no_repeat_ngram_size is for text: leave it out"),
        ("coverage_penalty=-1", "coverage_penalty=-1.0 must be between 0 and 100"),
        ("coverage_penalty=nan", "coverage_penalty=nan must be between 0 and 100"),
        ("coverage_penalty=1,beam_size=1", "coverage_penalty needs a beam"),
        ("coverage_penalty=1,mbr=chrf", "coverage_penalty cannot be combined with mbr"),
        ("coverage_penalty=1,constrained=True", "coverage_penalty cannot be combined with constrained=True"),
        ("coverage_penalty=1,sampling_method=random", "cannot be combined with sampling_method=random"),
        ("mbr=bert", "mbr=bert must be chrf or bleu"),
        ("candidates=8", "candidates has no effect without mbr"),
        ("mbr=chrf,candidates=3", "candidates=3 must be between 4 and 100, and at least beam_size=4"),
        ("mbr=chrf,constrained=True", "mbr is for text"),
        ("alignments=giza", "alignments=giza must be pharaoh"),
        ("alternatives=101", "alternatives=101 must be between 0 and 100"),
        ("alternatives=-1", "alternatives=-1 must be between 0 and 100"),
        (
            "token_scores=True,constrained=True",
            "token_scores is for text: leave it out with constrained=True",
        ),
        ("alternatives=2,split_sentences=True", "split_sentences cannot be combined with alternatives"),
        ("split_sentences=True,constrained=True", "split_sentences cannot be combined with constrained=True"),
        ("split_sentences=True,return_beams=True", "cannot be combined with return_beams=True"),
        ("split_sentences=True,sampling_method=random", "cannot be combined with sampling_method=random"),
        ("markup=xml", r"markup=xml must be one of html, html\+numbers, placeholders"),
        ("markup=html,constrained=True", "markup cannot be combined with constrained=True"),
        ("markup=html,return_beams=True", "markup cannot be combined with return_beams=True"),
        ("tag=<2 de>", "tag='<2 de>' must not have spaces"),
    ],
)
def test_wrong_ones_are_refused_in_one_line(text, message):
    with pytest.raises(T2TError, match=message) as caught:
        DecodeHParams.parse(text)
    assert str(caught.value).startswith("decode_hparams: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (32, "give batch_size=1024 for about 32 usual sentences, or leave it out (2048)"),
        (255, "give batch_size=8160 for about 255 usual sentences"),
        (1, "give batch_size=256 for about 8 usual sentences"),
    ],
)
def test_a_batch_size_in_sentences_is_said_to_be_tokens(given, said):
    warning = DecodeHParams.parse(f"batch_size={given}").batch_size_warning
    assert f"batch_size={given} counts input tokens here, not sentences as in tensor2tensor" in warning
    assert said in warning
    assert "\n" not in warning
    for enough in (256, 2048):
        assert DecodeHParams.parse(f"batch_size={enough}").batch_size_warning is None


def test_sampling_is_t2ts_and_no_setting_of_an_export():
    h = DecodeHParams.parse("sampling_method=random,sampling_temp=0.5,sampling_keep_top_k=10,random_seed=3")
    assert (h.samples, h.sampling_temp, h.sampling_keep_top_k, h.random_seed) == (True, 0.5, 10, 3)
    with pytest.raises(T2TError, match="sampling_method=random is for requests"):
        h.check_served()
    DecodeHParams().check_served()


@pytest.mark.parametrize("text", ["mbr=chrf", "markup=html", "alignments=pharaoh", "coverage_penalty=0.2"])
def test_what_exports_do_not_have(text):
    with pytest.raises(T2TError, match=f"{text.partition('=')[0]} is for t2t-decoder"):
        DecodeHParams.parse(text).check_served()


@pytest.mark.parametrize("text", ["tag=<2de>", "constrained=True"])
def test_what_litert_does_not_have(text):
    with pytest.raises(T2TError, match=f"LiteRT's format has no {text.partition('=')[0]}"):
        DecodeHParams.parse(text).check_litert()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sampling_method=random", "sampling_method=random: use --engine=tensorflow"),
        ("constrained=True", "constrained=True, for trees"),
        ("min_length_ratio=0.5", "min_length_ratio"),
        ("alternatives=1", "alternatives"),
        ("coverage_penalty=0.2,markup=html", "coverage_penalty together with alignments or markup"),
    ],
)
def test_what_ctranslate2_does_not_have(text, message):
    pytest.importorskip("ctranslate2")
    with pytest.raises(T2TError, match=f"CTranslate2 does not support {message}"):
        check_usable(HParams(), DecodeHParams.parse(text), "float32")


@pytest.mark.parametrize(
    "text",
    [
        *("sampling_method=random", "no_repeat_ngram_size=2", "coverage_penalty=0.2", "markup=html"),
        "alignments=pharaoh",
    ],
)
def test_what_jax_does_not_have(text):
    with pytest.raises(T2TError, match=f"{text.partition('=')[0]}.*KERAS_BACKEND=tensorflow"):
        JaxEngine.check(DecodeHParams.parse(text), EngineConfig())


@pytest.mark.parametrize("value", ["4", 4.0, None, True])
def test_values_of_other_types(value: object) -> None:
    with pytest.raises(T2TError, match=rf"^decode_hparams: beam_size={value!r} is not of type int$"):
        DecodeHParams(beam_size=value)  # type: ignore[arg-type]


def test_settings_are_a_string() -> None:
    with pytest.raises(
        T2TError, match=r"^decode_hparams: {'beam_size': 3} is not a string of settings, such as"
    ):
        DecodeHParams.parse({"beam_size": 3})  # type: ignore[arg-type]
