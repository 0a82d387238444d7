import pytest

from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError


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
        ("shortlist=yes", "must be one of off, on, by_line"),
        ("shortlist=on,constrained=True", "shortlist=on cannot be combined with constrained=True"),
        ("shortlist=on,sampling_method=random", "cannot be combined with sampling_method=random"),
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


@pytest.mark.parametrize("value", ["4", 4.0, None, True])
def test_values_of_other_types(value: object) -> None:
    with pytest.raises(T2TError, match=rf"^decode_hparams: beam_size={value!r} is not of type int$"):
        DecodeHParams(beam_size=value)  # type: ignore[arg-type]


def test_settings_are_a_string() -> None:
    with pytest.raises(
        T2TError, match=r"^decode_hparams: {'beam_size': 3} is not a string of settings, such as"
    ):
        DecodeHParams.parse({"beam_size": 3})  # type: ignore[arg-type]
