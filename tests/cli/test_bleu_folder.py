"""`t2t-bleu --translations_dir`: output, TensorBoard events, continuation by a second run."""

import os
import struct
from pathlib import Path

import pytest
import sacrebleu
from tensorboard.compat.proto.event_pb2 import Event

from t2t_revival.cli import bleu
from t2t_revival.cli.bleu import list_translations
from tests.support.line_corpus import write_lines

REFERENCES = ["Ein Hund läuft durch den grünen Park.", "Zwei E-Bikes stehen vor dem Haus."]
OUTPUTS = {
    1000: REFERENCES,
    200: ["ein Hund läuft durch den Park.", "Zwei E-Bikes stehen vor einem Haus."],
}


def write(path, lines, time=0.0):
    write_lines(path, lines)
    if time:
        os.utime(path, (time, time))


@pytest.fixture
def place(tmp_path):
    """A folder of two translations, a hidden third one that is being written, and their references."""
    folder = tmp_path / "translations"
    folder.mkdir()
    write(tmp_path / "ref.de", REFERENCES)
    write(folder / "translate_ende-flags.json", ["{}"], 1e9)
    for step, lines in OUTPUTS.items():
        write(folder / f"translate_ende-{step}", lines, 1e9 + step)
    write(folder / ".translate_ende-300.tmp", ["Ein"])
    return tmp_path


def run(place, *more):
    where = [f"--translations_dir={place / 'translations'}", f"--reference={place / 'ref.de'}"]
    return bleu.main(["t2t-bleu", *where, *more])


def expected(step, lowercase):
    return sacrebleu.corpus_bleu(OUTPUTS[step], [REFERENCES], lowercase=lowercase).score


def events(folder):
    """(tag, step, time, value) of a folder's event files, read as the format is defined."""
    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            content = content[12 + length + 4 :]
            found += [(v.tag, event.step, event.wall_time, v.simple_value) for v in event.summary.value]
    return found


def test_table(place, capsys):
    assert run(place) == 0
    head, *rows, best = capsys.readouterr().out.splitlines()
    assert head.split() == ["step", "BLEU_uncased", "BLEU_cased", "file"]
    assert [row.split() for row in rows] == [
        [str(step), f"{expected(step, True):.2f}", f"{expected(step, False):.2f}", f"translate_ende-{step}"]
        for step in (200, 1000)
    ]
    assert expected(200, True) != expected(200, False), "or else the variants could be exchanged"
    assert best.startswith("best BLEU_cased: step 1000, 100.00 nrefs:1|case:mixed")
    assert sorted(path.name for path in place.iterdir()) == ["ref.de", "translations"]


def test_events(place, capsys):
    out = place / "events"
    assert run(place, f"--event_dir={out}") == 0
    assert f"next: tensorboard --logdir={out}" in capsys.readouterr().out
    assert events(out) == [
        ("BLEU_uncased", 0, 1e9, 0.0),
        ("BLEU_cased", 0, 1e9, 0.0),
        ("BLEU_uncased", 200, 1e9 + 200, pytest.approx(expected(200, True))),
        ("BLEU_cased", 200, 1e9 + 200, pytest.approx(expected(200, False))),
        ("BLEU_uncased", 1000, 1e9 + 1000, pytest.approx(100.0)),
        ("BLEU_cased", 1000, 1e9 + 1000, pytest.approx(100.0)),
    ]
    assert (out / "last_evaluated_step.txt").read_text() == "1000\n"


def test_variant_suffix_and_no_zero(place):
    out = place / "events"
    flags = ["--bleu_variant=cased", "--tag_suffix=_beam8", "--noreport_zero", "--min_steps=201"]
    assert run(place, f"--event_dir={out}", *flags) == 0
    assert events(out) == [("BLEU_cased_beam8", 1000, 1e9 + 1000, pytest.approx(100.0))]


def test_a_second_run_goes_on(place, capsys):
    out = f"--event_dir={place / 'events'}"
    assert run(place, out) == 0
    before = events(place / "events")
    capsys.readouterr()
    assert run(place, out) == 0
    assert capsys.readouterr().out == "nothing new after step 1000; --min_steps=0 scores all again\n"
    write(place / "translations" / "translate_ende-1500", REFERENCES, 1e9 + 1500)
    assert run(place, out) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:2]] == ["1500"]
    new = events(place / "events")[len(before) :]
    assert [(tag, step) for tag, step, _, _ in new] == [("BLEU_uncased", 1500), ("BLEU_cased", 1500)]


def test_a_file_that_cannot_be_scored_is_named_and_the_others_are_scored(place, capsys):
    write(place / "translations" / "translate_ende-300", REFERENCES[:1])
    assert run(place) == 1
    shown = capsys.readouterr()
    assert [row.split()[0] for row in shown.out.splitlines()[1:]] == ["200", "1000"]
    assert f"translate_ende-300 has 1 lines but {place / 'ref.de'} has 2; skipped" in shown.err
    assert (
        "error: not scored: translate_ende-300; delete these files, make them again with "
        "t2t-translate-all, and score them with --min_steps=300"
    ) in shown.err


def test_a_reference_of_another_text_is_at_fault(place, capsys):
    write(place / "ref.de", REFERENCES[:1])
    assert run(place) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == (
        f"t2t-bleu: error: {place / 'ref.de'} has 1 lines but every translation has 2: give the "
        "--reference of the text that was translated"
    )


def test_translations_of_several_texts_are_at_fault(place, capsys):
    write(place / "ref.de", [*REFERENCES, "Noch einer."])
    write(place / "translations" / "translate_ende-300", REFERENCES[:1])
    assert run(place) == 1
    assert (
        "not scored: translate_ende-200, translate_ende-300, translate_ende-1000;" in capsys.readouterr().err
    )


def test_an_event_dir_that_cannot_be_written(place, capsys):
    assert run(place, f"--event_dir={place / 'ref.de' / 'events'}") == 1
    assert f"cannot write to --event_dir={place}" in capsys.readouterr().err


def test_names_end_with_a_step(tmp_path: Path) -> None:
    for name in ("ende-1000", "translate_ende-20", "x-y-0300", "ende-flags.txt", "ende-7.tmp", "300", "-5"):
        (tmp_path / name).touch()
    (tmp_path / ".translate_ende-40.tmp").touch()
    (tmp_path / ".hidden-50").touch()
    (tmp_path / "folder-60").mkdir()
    found = [(file.step, file.path.name) for file in list_translations(tmp_path)]
    assert found == [(20, "translate_ende-20"), (300, "x-y-0300"), (1000, "ende-1000")]
    assert list_translations(tmp_path / "nowhere") == []


def test_each_suffix_has_a_last_step_of_its_own(place, capsys):
    out = place / "events"
    assert run(place, f"--event_dir={out}", "--tag_suffix=/beam8") == 0
    assert (out / "last_evaluated_step_beam8.txt").read_text() == "1000\n"
    (out / "last_evaluated_step.txt").write_text("many")
    assert run(place, f"--event_dir={out}") == 1
    assert "last_evaluated_step.txt: corrupt, not a number; remove it" in capsys.readouterr().err
