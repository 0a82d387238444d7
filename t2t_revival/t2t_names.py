"""Problems and hparams sets of tensor2tensor that have another name in this project, or none.

`python docs/t2t_tables.py` writes the same rows into docs/from_tensor2tensor.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple


class Row(NamedTuple):
    """A row of a table of tensor2tensor's names.

    Attributes:
        names: separated by spaces; * stands for any characters.
        here: names of this project, separated by ", "; empty where there is none.
        note: a remark, in Markdown.
    """

    names: str
    here: str
    note: str = ""

    @property
    def ours(self) -> list[str]:
        """The names of this project."""
        return self.here.split(", ") if self.here else []

    @property
    def plain_note(self) -> str:
        """The note without Markdown, for a terminal."""
        return self.note.replace("`", "")


THREE_LINES = "needs a class of three lines in a package of yours, see `examples/my_problem/README.md`"
LANGUAGES = re.compile(r"translate_([a-z]{2})([a-z]{2})_")
SUFFIXES = re.compile(r"(?P<packed>_packed(?:1k|256)?)?(?P<reversed>_rev)?$")
PACKED = "batches by length leave 0.5 to 5% padding"

PROBLEMS = (
    Row(
        "translate_ende_wmt32k",
        "translate_ende, --vocab_size=32768",
        "WMT14 of TensorFlow Datasets, where T2T took WMT18's news commentary",
    ),
    Row("translate_ende_wmt8k", "translate_ende, --vocab_size=8192"),
    Row(
        "translate_ende_wmt_bpe32k",
        "translate_ende",
        "before 1.15; the paper's 37,000 pieces are the default",
    ),
    Row("translate_enfr_wmt32k", "translate_enfr, --vocab_size=32768"),
    Row("translate_enfr_wmt8k", "translate_enfr, --vocab_size=8192"),
    Row(
        "translate_enfr_wmt_small32k",
        "translate_enfr, --vocab_size=32768",
        "with the first million pairs in a folder, by `--data_source`",
    ),
    Row(
        "translate_enfr_wmt_small8k",
        "translate_enfr, --vocab_size=8192",
        "with the first million pairs in a folder, by `--data_source`",
    ),
    Row(
        "translate_enzh_wmt32k",
        "translate_enzh, --vocab_size=32768",
        "WMT17 of TensorFlow Datasets, where T2T took news commentary and, if they were there, other corpora",
    ),
    Row("translate_enzh_wmt8k", "translate_enzh, --vocab_size=8192", "as `translate_enzh_wmt32k`"),
    Row(
        "translate_*_characters",
        "",
        "no vocabulary of bytes alone; SentencePiece's has them for what it lacks",
    ),
    Row("translate_*_wmt_multi*", "", "several problems at once"),
    Row(
        "translate_ende2018_* translate_ende_pc* translate_ende_wmt_pc* translate_ende_wmt_clean*",
        "translate_ende",
        "with these corpora in a folder, cleaned by you, by `--data_source`",
    ),
    Row(
        "translate_enfr_wmt32k_with_backtranslate_*",
        "translate_enfr",
        "with a corpus of `t2t-back-translate` in the list of `--data_source`",
    ),
    Row(
        "translate_encs_* translate_enes_* translate_enet_* translate_enid_* translate_enmk_* "
        "translate_enro_* translate_entn_* translate_envi_*",
        "",
        THREE_LINES,
    ),
    Row("*_rev", "*_rev", "of any problem of translation: `translate_ende_rev`"),
    Row("*_packed *_packed1k *_packed256", "", PACKED),
    Row("parsing_english_ptb8k", "parse_wsj, --vocab_size=8192", "T2T 1.15's raised an error"),
    Row("parsing_english_ptb16k", "parse_wsj, --vocab_size=16384", "T2T 1.15's raised an error"),
    Row("wsj_parsing", "parse_wsj", "by `--data_source`, a Penn Treebank folder or trees in files"),
    Row(
        "parsing_icelandic16k",
        "",
        "`parse_wsj` reads trees of any language, but cuts lines of text into words as English",
    ),
    Row("image_* img2img_* video_* ocr_test", "", "out of scope: images and video"),
    Row("librispeech* common_voice* audio_timit_*", "", "out of scope: speech"),
    Row("languagemodel_* lambada_* enwik8_*", "", "out of scope: language models"),
    Row(
        "sentiment_* multi_nli* stanford_nli* question_nli* winograd_nli* sci_tail* cola* rte* sva_* "
        "msr_paraphrase_corpus* quora_question_pairs* conll2002_*",
        "",
        "out of scope: classification",
    ),
    Row(
        "gym_* algorithmic_* tiny_algo timeseries_* genomics_*", "", "out of scope: games, algorithms, series"
    ),
    Row(
        "summarize_* wikisum_* wiki_revision* dialog_* squad* babi_qa* paraphrase_generation_* "
        "style_transfer_* program_search_* programming_desc2code_* github_function_docstring text2text_* "
        "copy_sequence* reverse_sequence* flip_bi_gram_sequence",
        "",
        "out of scope; a task from text to text needs a problem of yours, see "
        "`examples/my_problem/README.md`",
    ),
)
HPARAMS_SETS = (
    Row(
        "transformer_clean transformer_clean_big",
        "transformer_base_v2",
        "with label smoothing and all dropouts 0 by `--hparams`, and the second with the sizes of "
        "transformer_big",
    ),
    Row(
        "transformer_cubbitt",
        "transformer_big_single_gpu",
        "after 1.15.7; with batch_size=2900, max_length=150, learning_rate_warmup_steps=8000 and "
        "layer_prepostprocess_dropout=0 by `--hparams`; Adafactor and its schedule are gone",
    ),
    Row("transformer_test", "tiny"),
    Row("transformer_*tpu* transformer_*range", "", "TPUs, tuning"),
    Row(
        "transformer_*_packed* transformer_ada_lmpackedbase* transformer_prepend* transformer_tall* "
        "transformer_wikitext103_*",
        "",
        "language models and packed data",
    ),
    Row(
        "transformer_relative* transformer_parameter_attention_* transformer_supervised_attention "
        "transformer_*_memory_v0",
        "",
        "other kinds of attention",
    ),
    Row(
        "transformer_librispeech* transformer_common_voice transformer_timeseries",
        "",
        "speech, time series",
    ),
    Row(
        "transformer_base_vq* transformer_fairseq_fp16_activation_big",
        "",
        "vector quantisation; float16, for which there is `--precision`",
    ),
)


def find(name: str, rows: Iterable[Row]) -> Row | None:
    """Finds the row of exactly this name, or else the first of a matching pattern."""
    matching = [row for row in rows if any(fnmatchcase(name, pattern) for pattern in row.names.split())]
    return next((row for row in matching if name in row.names.split()), matching[0] if matching else None)


def problem_here(name: str) -> str | None:
    """Returns our name of tensor2tensor's problem: translate_ende for translate_ende_wmt32k_packed."""
    row, suffixes = _problem(name)
    return f"{row.ours[0]}{suffixes['reversed'] or ''}" if row and row.ours else None


def registered_name(name: str, known: Collection[str]) -> str:
    """Returns the known name of a problem for its own or tensor2tensor's; another name unchanged."""
    return name if name in known else problem_here(name) or name


def is_problem(theirs: str, ours: str) -> bool:
    """Checks for the same problem: tensor2tensor's translate_encs_wmt32k_rev is translate_encs_rev."""
    row, suffixes = _problem(theirs)
    if row is None or row.ours:
        return row is not None and problem_here(theirs) == ours
    same_direction = bool(suffixes["reversed"]) == ours.endswith("_rev")
    return same_direction and theirs.startswith(f"{ours.removesuffix('_rev')}_")


def explain_problem(name: str) -> str | None:
    """Explains the name of a problem of tensor2tensor, or why the problem is gone; `None` for other names."""
    row, suffixes = _problem(name)
    if row is None:
        return None
    if not row.ours:
        return f"{name} is tensor2tensor's and {_why_gone(name, row)}"
    flags = " ".join([f"--problem={problem_here(name)}", *row.ours[1:]])
    notes = [row.plain_note, f"not packed: {PACKED}" if suffixes["packed"] else ""]
    return "; ".join(filter(None, [f"{name} is tensor2tensor's; here it is {flags}", *notes]))


def _problem(name: str) -> tuple[Row | None, re.Match[str]]:
    """Finds the row of a problem without its suffixes, and these."""
    suffixes = SUFFIXES.search(name)
    assert suffixes is not None  # it matches the end of any text
    named = [row for row in PROBLEMS if not row.names.startswith("*")]  # the others are about suffixes
    return find(name[: suffixes.start()], named), suffixes


def _why_gone(name: str, row: Row) -> str:
    languages = LANGUAGES.match(name)
    if row.note == THREE_LINES and languages:
        source, target = languages.groups()
        return (
            f"{row.plain_note}: class Translate{source.title()}{target}(Text2TextProblem): "
            f'source_lang = "{source}"; target_lang = "{target}"; '
            "its text is a folder or a set of TFDS, as --data_source"
        )
    return row.plain_note if row.note.startswith("out of scope") else f"is gone: {row.plain_note}"


def explain_hparams(name: str) -> str | None:
    """Explains the name of a set of tensor2tensor's Transformer for text, or why it is gone; else `None`."""
    row = find(name, HPARAMS_SETS)
    if row is None:
        return None
    fate = f"; the nearest here is --hparams_set={row.here}" if row.here else " and is gone"
    return ": ".join(filter(None, [f"{name} is tensor2tensor's{fate}", row.plain_note]))
