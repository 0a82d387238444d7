import math

import numpy as np
import pytest

from t2t_revival import DecodeHParams, T2TError
from t2t_revival.decoding.hypothesis_scores import TERMS, score
from t2t_revival.decoding.options import SETTINGS


def test_defaults_are_the_papers():
    h = DecodeHParams.parse("")
    assert (h.beam_size, h.alpha, h.extra_length, h.outputs) == (4, 0.6, 50, 1)


def test_a_name_that_a_problem_has_wrong():
    with pytest.raises(T2TError, match="unknown decode_hparam 'beam'; did you mean beam_size"):
        DecodeHParams.parse("", {"beam": 1})


def test_overrides_stand_above_the_problems_defaults():
    h = DecodeHParams.parse(
        "beam_size=8, return_beams=True,write_beam_scores=true", {"beam_size": 21, "alpha": 0.3}
    )
    assert (h.beam_size, h.alpha, h.outputs, h.write_beam_scores) == (8, 0.3, 8, True)


def wrong_values():
    for name, about in SETTINGS.items():
        kind, ends = type(getattr(DecodeHParams, name)), (about.least, about.most)
        beyond = [end + step for end, step in zip(ends, (-1, 1), strict=True) if end is not None]
        for value in [*beyond, *[math.nan] * (kind is float), *["no choice"] * bool(about.choices)]:
            yield name, kind(value)


@pytest.mark.parametrize(("name", "value"), wrong_values())
def test_values_out_of_bounds_or_choices(name, value):
    with pytest.raises(T2TError, match=rf"^decode_hparams: {name}={value} must be [^\n]+$"):
        DecodeHParams(**{name: value})


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


def test_sampling_is_t2ts():
    h = DecodeHParams.parse("sampling_method=random,sampling_temp=0.5,sampling_keep_top_k=10,random_seed=3")
    assert (h.samples, h.sampling_temp, h.sampling_keep_top_k, h.random_seed) == (True, 0.5, 10, 3)


@pytest.mark.parametrize("value", ["4", 4.0, None, True])
def test_values_of_other_types(value: object) -> None:
    with pytest.raises(T2TError, match=rf"^decode_hparams: beam_size={value!r} is not of type int$"):
        DecodeHParams(beam_size=value)  # type: ignore[arg-type]


def test_settings_are_a_string() -> None:
    with pytest.raises(T2TError, match=r"^decode_hparams: {'beam_size': 3} is not a string of settings"):
        DecodeHParams.parse({"beam_size": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(20))
def test_no_output_gets_a_better_score_than_the_bound(seed):
    length_now, longest = 3, 12
    random = np.random.default_rng(seed)
    abouts = {term.name: SETTINGS[term.name] for term in TERMS}
    settings = {name: random.uniform(about.least, about.most) for name, about in abouts.items()}
    settings = {name: np.float32(value) for name, value in settings.items() if random.random() < 0.8}
    log_probs = -random.exponential(5, [2, 4]).astype(np.float32)
    bound = np.asarray(score(log_probs, length_now, settings, longest=np.full([2, 1], longest)))
    scores = [
        score(log_probs - np.float32(lost), length, settings)
        for length in range(length_now, longest + 1)
        for lost in (0, 0.1, 10)
    ]
    assert (np.max(scores, axis=0) <= bound + 1e-5 * np.abs(bound)).all()
