"""The flags of lines that are translated: their file, its format, and constraints of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from t2t_revival.cli.support.flags import READ, Flags, Names, flag
from t2t_revival.cli.support.text_files import STANDARD_STREAM, read_lines, split_at_tab
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.options import MARKUP
from t2t_revival.errors import T2TError
from t2t_revival.utils.unicode_forms import FORMS

if TYPE_CHECKING:
    from t2t_revival.addons.lexical.terminology import Terminology
    from t2t_revival.decoding.options import DecodeHParams

FORMATS = TEXT, JSONL = "text", "jsonl"  # of inputs and of outputs
SETTINGS = {"split_sentences": "split_sentences", "markup": "markup", "normalize": "unicode_form"}


@dataclass(frozen=True)
class NormalizeFlags(Flags):
    """The flag of a command whose text may be in another Unicode form than that of the model's data."""

    normalize: str = flag(
        "",
        "Unicode form into which text is brought before it is cut into pieces: nfc (letters with their "
        "marks) or nfd (apart).",
        choices=("", *FORMS),
    )


@dataclass(frozen=True)
class LineFlags(NormalizeFlags):
    """The flags of a command that translates the lines of a file, or lines that are typed."""

    exclusive: ClassVar[Names] = (("partial_targets", "input_format"),)
    needs: ClassVar[Names] = ((f"input_format={JSONL}", "decode_from_file"),)
    features: ClassVar[dict[str, str]] = {"partial_targets": "prefixes", "terminology": "constraints"}
    decode_from_file: str = flag(
        "", "Text to translate, a sentence a line, plain or .gz; - is the standard input.", file=READ
    )
    split_sentences: bool = flag(
        False, "Translate each sentence of a line for itself; needs the package sentencex."
    )
    markup: str = flag(
        "",
        "Lines have tags and placeholders, which come out as they are, at the words that they belong to.",
        choices=("", *MARKUP),
    )
    partial_targets: bool = flag(
        False,
        "Each line is source TAB beginning of the output. The tokens of the beginning, as the vocabulary "
        "splits it, are forced.",
    )
    pretty: bool = flag(False, "Parsing: draw trees where they fit, or else indent them.")
    terminology: str = flag(
        "",
        "File of source term TAB target term: where a line has the source term, its output has the target "
        "term.",
        file=READ,
    )
    input_format: str = flag(
        TEXT,
        'Format of --decode_from_file: jsonl has objects {"text": "...", "constraints": ["..."], "terms": '
        '{"source": "target"}, "avoid": ["..."]}, of which only the text is necessary.',
        choices=FORMATS,
    )
    output_format: str = flag(
        TEXT,
        "text: a line for each output; jsonl: a JSON object with its score and the details that "
        "--decode_hparams asks for, by alignments, token_scores and alternatives.",
        choices=FORMATS,
    )

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of decoding that have a flag of their own, if it was given."""
        return {setting: getattr(self, name) for name, setting in SETTINGS.items() if self.has(name)}

    @property
    def asked(self) -> dict[str, str]:
        """Features that flags ask for, beside the settings; see `capabilities.check`."""
        return {feature: f"--{name}" for name, feature in self.features.items() if getattr(self, name)}

    @property
    def writes_json(self) -> bool:
        return self.output_format == JSONL

    def check_lines(self, typed: bool) -> None:
        """Raises T2TError where both terms and lines come from the standard input; lines may be `typed`."""
        if self.terminology == STANDARD_STREAM and typed:
            raise T2TError("--terminology=-: typed lines come from the standard input: name a file")

    def check_details(self, options: DecodeHParams | None, of_scores: bool = False) -> None:
        """Raises T2TError for details that lines of text do not have; `of_scores`, no alignments either."""
        if options and not self.writes_json:
            place = capabilities.SCORE_LINES if of_scores else capabilities.TEXT_LINES
            capabilities.check(options.asked(), place)

    def read_terminology(self) -> Terminology:
        """Reads the file of `--terminology`; without one, there are no terms."""
        from t2t_revival.addons.lexical.terminology import Terminology

        path = self.terminology
        return Terminology.parse(read_lines(path, "terminology"), path) if path else Terminology({})

    def lines_of(self, lines: Sequence[str], name: str, first_line: int = 1) -> Lines:
        """Returns the lines of a file with the beginnings and constraints of outputs that flags ask for."""
        prefixes, constraints = None, None
        if self.partial_targets:
            pairs = [split_at_tab(line, name, number) for number, line in enumerate(lines, first_line)]
            lines, prefixes = [line for line, _ in pairs], [prefix for _, prefix in pairs]
        reads_json = self.input_format == JSONL
        if self.terminology or reads_json:
            # This imports NumPy.
            from t2t_revival.addons.lexical.json_inputs import JsonLine, parse_json_lines

            terminology = self.read_terminology()
            parsed = parse_json_lines(lines, name, first_line) if reads_json else [*map(JsonLine, lines)]
            lines = [line.text for line in parsed]
            constraints = [line.all_constraints(terminology) for line in parsed]
        return Lines(lines, prefixes=prefixes, first=first_line, constraints=constraints)
