"""The text on which a vocabulary is trained."""

from t2t_revival import Source
from t2t_revival.data.generation import sample_lines
from t2t_revival.data.mixture import CorpusRows


class Counting(Source):
    kind = name = "counting"
    source_lang, target_lang = "en", "de"
    read = 0

    def splits(self):
        return ("train",)

    def count(self, split):
        return 1_000_000

    def pairs(self, split, start, stop):
        for number in range(start, stop):
            self.read += 1
            yield f"{number:08d}", "x" * 12


def test_the_vocabulary_sees_an_even_sample_of_bounded_size():
    counting = Counting()
    lines = list(sample_lines(CorpusRows(counting), 1_000_000, characters=20_000))
    numbers = [int(line) for line in lines[::2]]
    assert len(numbers) == 1000
    assert sum(map(len, lines)) == 20_000
    assert counting.read <= 1100
    assert [number // 10_000 for number in numbers[::10]] == list(range(100))
