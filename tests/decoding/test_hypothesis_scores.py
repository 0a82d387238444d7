"""The bound by which searches stop holds for each term of the score, whichever are added."""

import numpy as np
import pytest

from t2t_revival.decoding.hypothesis_scores import TERMS, score

LENGTH, LONGEST = 3, 12


@pytest.mark.parametrize("seed", range(20))
def test_no_output_gets_a_better_score_than_the_bound(seed):
    random = np.random.default_rng(seed)
    settings = {term.name: random.uniform(term.minimum, term.maximum) for term in TERMS}
    settings = {name: np.float32(value) for name, value in settings.items() if random.random() < 0.8}
    log_probs = -random.exponential(5, [2, 4]).astype(np.float32)
    bound = np.asarray(score(log_probs, LENGTH, settings, longest=np.full([2, 1], LONGEST)))
    scores = [
        score(log_probs - np.float32(lost), length, settings)
        for length in range(LENGTH, LONGEST + 1)
        for lost in (0, 0.1, 10)
    ]
    assert (np.max(scores, axis=0) <= bound + 1e-5 * np.abs(bound)).all()
