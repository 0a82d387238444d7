"""`t2t-align`: which words of given targets translate which words of their sources.

t2t-align --output_dir=DIR --choose_heads [--source=FILE --target=FILE --gold=FILE]
t2t-align --output_dir=DIR --source=FILE --target=FILE [--align_to_file=FILE] [--gold=FILE]

Aligns words: of each pair of lines, a line "0-0 1-2 ..." has the source word and the target word of each
link, counted from 0, in Pharaoh's format. Words are what stands between white space. With --gold, the
alignment error rate is printed; its links may be possible, 1?2, instead of sure, 1-2.

--choose_heads finds the heads of the decoder's attention that align the dev split, or the given pairs, best,
and writes them to output_dir/alignment.json. Where there is no such file, that is done by the dev split when
a command first aligns words, unless the model was trained with guided_alignment_weight. Without --gold the
heads are compared with translations of pieces that are learned from the training pairs (IBM model 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from t2t_revival.addons.head_choice import (
    ERROR_RATE,
    LINKS_FOUND,
    MAX_CHOOSING,
    choose_heads,
    choose_without_gold,
)
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import READ, WRITTEN, flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import ProgressBar, say
from t2t_revival.cli.support.run_flags import DECODE_HPARAMS, SPLIT_DIR, ModelFlags, decode_options
from t2t_revival.cli.support.text_files import (
    check_outputs,
    output_path,
    output_to,
    read_lines,
    read_parallel,
)
from t2t_revival.data.word_alignment import (
    Alignment,
    Link,
    checked_lines,
    count_links,
    format_pharaoh,
    parse_pharaoh,
)
from t2t_revival.decoding.alignment_heads import all_heads
from t2t_revival.decoding.files.resumable import naming, origin_of
from t2t_revival.decoding.options import PHARAOH
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TRAIN
from t2t_revival.utils.files import check_writable

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class AlignFlags(ModelFlags, NormalizeFlags):
    exclusive = (("choose_heads", "align_to_file"),)
    needs = (("source", "target"), ("target", "source"))
    decode_hparams: str = flag("", DECODE_HPARAMS)
    data_dir: str | None = flag(None, SPLIT_DIR)
    source: str = flag("", "Source texts, one on each line; - is the standard input.", file=READ)
    target: str = flag("", "Target texts, as many.", file=READ)
    gold: str = flag("", "Gold alignments, as many.", file=READ)
    align_to_file: str = flag(
        "", "File for the alignments; by default, or with -, the standard output.", file=WRITTEN
    )
    choose_heads: bool = flag(False, "Choose the heads that align, instead of aligning.")


def _align(flags: AlignFlags) -> None:
    if not (flags.source or flags.choose_heads):
        raise T2TError("--source=FILE and --target=FILE are missing, or --choose_heads")
    folder = flags.open_model()
    check_outputs(flags.model_files(folder), flags.files(WRITTEN))
    if flags.choose_heads:
        check_writable(folder.path)
    pairs = _pairs(flags, folder)
    gold = _gold(flags.gold, pairs) if flags.gold else None
    tensorflow_setup.load_tensorflow_alone()
    if flags.choose_heads:
        _choose(flags, folder, pairs, gold)
    else:
        _write(flags, folder, pairs, gold)


def _pairs(flags: AlignFlags, folder: ModelFolder) -> Pairs:
    """Returns the given pairs, or the first ones of dev."""
    if flags.source:
        sources, targets = read_parallel(("source", flags.source), ("target", flags.target))
        return list(zip(sources, targets, strict=True))
    pairs = list(folder.find_data(flags.data_dir).references(DEV))
    return pairs if flags.gold else pairs[:MAX_CHOOSING]


def _gold(path: str, pairs: Pairs) -> list[Alignment]:
    lines = read_lines(path, "gold")
    if len(lines) != len(pairs):
        raise T2TError(f"{path} has {len(lines)} lines for {len(pairs)} pairs: write one for each")
    return [*map(parse_pharaoh, checked_lines(lines, pairs, path))]


def _load(flags: AlignFlags, folder: ModelFolder, *, aligns: bool) -> Translator:
    options = decode_options(flags.decode_hparams, folder.run, flags.normalize)
    options = replace(options, alignments=PHARAOH if aligns else "")
    translator, path, step = flags.load_translator(folder, options, on_note=say)
    say(f"aligning with {path} ({step})")
    return translator


def _choose(flags: AlignFlags, folder: ModelFolder, pairs: Pairs, gold: Sequence[Alignment] | None) -> None:
    translator = _load(flags, folder, aligns=False)
    all_heads(translator.model.hparams).check(translator.model.hparams)
    pairs = pairs[:MAX_CHOOSING]
    with ProgressBar("iterations") as iterations, ProgressBar("pairs") as bar:
        if gold is None:
            shards = folder.own_data(flags.data_dir).split(TRAIN)
            choice = choose_without_gold(translator, pairs, shards, iterations.update, bar.show_decoding)
        else:
            choice = choose_heads(translator, pairs, gold[:MAX_CHOOSING], bar.show_decoding)
    heads, figures = choice
    path = heads.save(folder.path, figures)
    where = "where they are read" if heads.shifted else "where they are predicted"
    names = " ".join(map(str, heads.heads))
    print(f"layer {heads.layer}, heads {names}, tokens {where}: {path}")
    if gold is None:
        share = f"{figures[LINKS_FOUND]:.1%}"
        print(f"it finds {share} of the links of pieces that are each other's best translation")
    else:
        print(f"alignment error rate {figures[ERROR_RATE]:.4f} of the {len(pairs):,} pairs it was chosen by")
    print(f"next: {CommandLine('t2t-decoder', **flags.named, decode_hparams='alignments=pharaoh')}")


def _write(flags: AlignFlags, folder: ModelFolder, pairs: Pairs, gold: Sequence[Alignment] | None) -> None:
    """Writes the alignment of each pair, and prints the error rate."""
    path = output_path(flags.align_to_file)
    with output_to(path) as output, ProgressBar("pairs") as bar:
        translator = _load(flags, folder, aligns=True)
        known = output.start(origin_of(translator, "alignments", pairs), len(pairs))
        found: list[Iterable[Link]] = [parse_pharaoh(line).sure for line in known]
        with naming(f"{flags.source} and {flags.target}"):
            results = translator.align(
                pairs, lambda cut: say(f"warning: {cut}"), bar.show_decoding, len(known)
            )
            for links in results:
                output.write(to_bytes([format_pharaoh(links)]))
                found.append(links)
    if path:
        say(f"alignments {path}")
    if gold is not None:
        counts = count_links(found, gold)
        say(
            f"alignment error rate {counts.error_rate:.4f}, precision {counts.precision:.4f}, recall "
            f"{counts.recall:.4f}: {counts.found:,} links, {counts.sure:,} sure ones in {flags.gold}"
        )


main = Command(AlignFlags, _align, __doc__)
