"""Several decoders that share an input."""

from pathlib import Path

import pytest

from t2t_revival.cli import decoder
from t2t_revival.decoding.files.shards import Shard

LINES = "the dog\n\nsees 3 houses\nthe\nhouses dog\n"


def decode(out, *arguments):
    hparams = "--decode_hparams=beam_size=2,extra_length=3"
    return decoder.main(["t2t-decoder", f"--output_dir={out}", hparams, *map(str, arguments)])


@pytest.mark.parametrize("total", [0, 1, 5, 12, 1000])
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_parts_one_after_the_other_are_the_whole(total, workers):
    bounds = [Shard(number, workers).bounds(total) for number in range(workers)]
    assert [line for first, end in bounds for line in range(first, end)] == list(range(total))
    sizes = [end - first for first, end in bounds]
    assert max(sizes) - min(sizes) <= 1


def test_names_are_t2ts():
    """T2T 1.15 `_add_shard_to_filename`: filename + ("%.3d" % shard_id), if there are several shards."""
    assert Shard(0, 1).path(Path("a/out.de")) == Path("a/out.de")
    assert Shard(7, 12).path(Path("a/out.de")) == Path("a/out.de007")
    assert Shard(1, 3).joining(Path("my out")) == "cat 'my out'{000..002} > 'my out'"


@pytest.mark.slow
def test_outputs_of_all_workers_are_those_of_one(out, tmp_path, capsys):
    (tmp_path / "in").write_text(LINES)
    flags = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}"]
    assert decode(out, *flags) == 0
    capsys.readouterr()
    for worker in range(3):
        assert decode(out, *flags, "--decode_shards=3", f"--worker_id={worker}") == 0
    said = capsys.readouterr().err
    assert f"worker 1 of 3: lines 2 to 3 of the 5 of {tmp_path / 'in'}" in said
    assert f"when all 3 workers are done: cat {tmp_path / 'o'}{{000..002}} > {tmp_path / 'o'}" in said
    parts = [(tmp_path / f"o00{worker}").read_text(encoding="utf-8") for worker in range(3)]
    assert [part.count("\n") for part in parts] == [1, 2, 2]
    assert "".join(parts) == (tmp_path / "o").read_text(encoding="utf-8")


def test_lines_are_numbered_as_in_the_whole(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the\nthe\n" + "houses " * 99 + "\n")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}", "--decode_shards=2", "--worker_id=1") == 0
    captured = capsys.readouterr()
    assert f"warning: {tmp_path / 'in'}, line 3: " in captured.err
    assert "truncated to the first 30" in captured.err
    assert captured.out.count("\n") == 2


def test_a_part_that_is_there_already_is_read_as_t2t_does(out, tmp_path, capsys):
    (tmp_path / "in001").write_text("the dog\nthe\nsees\n")
    flags = [f"--decode_from_file={tmp_path / 'in'}", "--decode_shards=2"]
    assert decode(out, *flags, "--worker_id=1") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 3
    assert f"worker 1 of 2: all lines of {tmp_path / 'in001'}" in captured.err
    assert decode(out, *flags, "--worker_id=0") == 1
    assert f"{tmp_path / 'in'}: No such file" in capsys.readouterr().err


@pytest.mark.slow
def test_a_split_is_shared_too(out, capsys):
    for worker in range(2):
        assert decode(out, "--decode_shards=2", f"--worker_id={worker}", "--log_examples=0") == 0
    said = capsys.readouterr()
    assert "on dev, sentences 3 to 5 of 5, 3 sentences" in said.out
    assert "worker 1 of 2: lines 3 to 5 of the 5 of the dev split" in said.err
    folder = out / "decoded"
    for kind, count in (("outputs", 5), ("inputs", 5), ("targets", 5)):
        parts = [(folder / f"dev-7.{kind}00{worker}").read_text(encoding="utf-8") for worker in range(2)]
        assert "".join(parts).count("\n") == count
        assert f"cat {folder / 'dev-7'}.{kind}{{000..001}} > {folder / 'dev-7'}.{kind}" in said.out
    assert "dev1 houses" in (folder / "dev-7.inputs000").read_text(encoding="utf-8")
    assert (folder / "dev-7.inputs001").read_text(encoding="utf-8").startswith("the dog sees dev2 houses\n")


def test_a_worker_may_have_nothing_to_do(out, capsys):
    assert decode(out, "--decode_shards=9", "--worker_id=0") == 0
    captured = capsys.readouterr()
    assert "BLEU" not in captured.out
    assert "worker 0 of 9: none of the 5 of the dev split" in captured.err
    assert (out / "decoded" / "dev-7.outputs000").read_text() == ""
