# ruff: noqa: RUF001
"""Paragraphs: cut into sentences without losing a character, and joined with the white space between them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from t2t_revival import DecodeHParams, T2TError
from t2t_revival.decoding.lines.paragraphs import CONTROLS, split
from tests.support.exported import make_translator

pytest.importorskip("sentencex")

CASES = [  # line ends as people see them; sentences of one line are separated by |
    ("en", "Dr. Smith went to Washington. |He arrived at 5 p.m. on Jan. 3rd. |It was cold."),
    ("en", '"Is it far?" she asked. |"No," he said. |They left.'),
    ("en", "See Fig. 3 and Sec. 2.1 for details. |The U.S. Army said so. |Mr. X (Inc.) agreed!"),
    ("en", "Visit www.example.com. |Pay $3.50 now... or later? |OK."),
    ("en", "1. Open the file. |2. Save it."),
    ("en", "What?! |Really."),
    ("en", "J. K. Rowling wrote it.  |Two spaces between.\t|Tab."),
    ("en", "Plan B\u00a0. |Next."),
    ("de", "Am 3. Oktober 1990 kam z. B. Dr. Müller. |Das ist ca. 5 km von hier entfernt. |Gut!"),
    ("de", "Er sagte: „Ich komme.“ |Dann ging er. |Die Nr. 5 lebt."),
    ("fr", "Il a dit : « Bonjour ! » |Puis il est parti."),
    ("zh", "今天天气很好。|我们去公园吧！|你觉得呢？"),
    ("ja", "今日は天気がいいです。|公園に行きましょう！"),
    ("xx", "One. |Two."),
]
TEXTS = st.text(st.sampled_from("aZé猫. ,;:-?!\t\u3000。，1\"'"), max_size=60)


@pytest.mark.parametrize(("language", "marked"), CASES)
def test_sentences(language, marked):
    paragraph = split(marked.replace("|", ""), language)
    assert [segment.text for segment in paragraph.segments] == [part.strip() for part in marked.split("|")]


@given(TEXTS, st.integers(1, 30), st.sampled_from(["en", "de", "zh"]))
@example("Z\u3000.", 9, "en")
@example("Hello there. Bye now.\n\n" * 500, 99, "en")
def test_nothing_is_lost_and_all_fit(line, longest, language):
    paragraph = split(line, language, fits=lambda text: len(text) <= longest)
    assert paragraph.join(paragraph.texts).translate(CONTROLS) == line.translate(CONTROLS)
    for segment in paragraph.segments:
        assert segment.text == segment.text.strip() != ""
        assert len(segment.text) <= longest


def test_long_sentences_are_cut_at_clauses_then_words_then_anywhere():
    line = "He came, he saw and looked; then he went. Donaudampfschifffahrt"
    found = split(line, "en", fits=lambda text: len(text) <= 16)
    assert "|".join(found.texts) == "He came,|he saw and|looked;|then he went.|Donaudampf|schifffahrt"
    assert found.join([segment.text.upper() for segment in found.segments]) == line.upper()


def test_numbers_and_addresses_stay_whole():
    line = "It cost 1,234,567 dollars at 10:30, as https://example.com/a:b says"
    found = split(line, "en", fits=lambda text: len(text) <= 26)
    assert "|".join(found.texts) == "It cost 1,234,567 dollars|at 10:30,|as https://example.com/a:b|says"


def test_long_texts_are_cut_where_their_sentences_end():
    line = "A dog sees the house at night. " * 700
    assert {segment.text for segment in split(line, "en").segments} == {"A dog sees the house at night."}


def test_each_segment_has_the_tag_of_the_line():
    found = split("<2de> One. Two.", "en", ["<2de>"])
    assert found.texts == ["<2de> One.", "<2de> Two."]
    assert found.join(["Eins.", "Zwei."]) == "Eins. Zwei."
    assert split("<2fr> One. Two.", "en", ["<2de>"]).texts == ["<2fr> One.", "Two."]


@pytest.mark.parametrize("line", ["", "   ", "\t\u3000"])
def test_a_blank_line_has_no_segments(line):
    assert split(line, "en").segments == []
    assert split(line, "en").join([]) == line.replace("\t", " ")


def test_the_library_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sentencex", None)
    with pytest.raises(T2TError, match="split_sentences needs sentencex"):
        split("a", "en")


def translator(vocabulary, asked="split_sentences=True", max_length=12):
    return make_translator(vocabulary, DecodeHParams.parse(f"extra_length=2,beam_size=2,{asked}"), max_length)


LINES = ["The dog sees. A cat runs!  Houses.", "", " one dog ", "the cat, the dog; the house and the " * 9]


@pytest.mark.slow
def test_known_lines_are_skipped_and_progress_is_of_lines(vocabulary):
    whole, shown = translator(vocabulary), []
    found = list(whole.iterate(LINES, on_progress=shown.append))
    assert {progress.total for progress in shown} == {len(LINES)}
    assert shown[-1].done == len(LINES)
    for skip in range(len(LINES) + 1):
        assert list(whole.iterate(LINES, skip=skip)) == found[skip:]


def test_faults_have_the_number_of_their_line(vocabulary):
    with pytest.raises(T2TError, match="line 2: not valid Unicode"):
        translator(vocabulary).nbest(["a. b. c.", "\ud800"])
    with pytest.raises(T2TError, match="split_sentences=True cannot be combined with more than one output"):
        translator(vocabulary).nbest(["a. b."], n=2)
    with pytest.raises(T2TError, match="split_sentences=True cannot be combined with forced beginnings"):
        translator(vocabulary).nbest(["a. b."], prefixes=["x"])
