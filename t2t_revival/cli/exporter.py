"""`t2t-exporter`: writes a trained model as a SavedModel for TensorFlow Serving, or for other engines.

t2t-exporter --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--export_dir=DIR]

Exports a trained model, vocabulary and search included, as one SavedModel: strings in, strings out.
TensorFlow Serving serves the newest version in export_dir. With --format=ctranslate2, exports the weights for
that engine; with --format=litert, model and search for LiteRT (TensorFlow Lite), from ids to ids; with
--format=transformers, a MarianMT folder; with --format=argos, a package of Argos Translate; with
--format=bergamot, a model for browsers.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.addons.ctranslate2.format import export_ctranslate2, format_vocabulary_map, vocabulary_names
from t2t_revival.addons.shortlist import Translations
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import say
from t2t_revival.cli.support.run_flags import DECODE_HPARAMS, EnsembleFlags, decode_options
from t2t_revival.curve_files import best_row
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.vocabulary.text_encoder import MARIAN, SUBWORDS
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.options import CTRANSLATE2, INT8, OFF, DecodeHParams
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.files import check_for_tensorflow, check_writable

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

SAVED_MODEL, LITERT = "saved_model", "litert"
TRANSFORMERS, ARGOS, BERGAMOT = "transformers", "argos", "bergamot"
FORMATS = {  # with the values of --quantize that they have, the default first
    SAVED_MODEL: ("none", "bfloat16", "int8_weights"),
    CTRANSLATE2: ("none", "bfloat16", "int8"),
    LITERT: ("none", "int8"),
    TRANSFORMERS: ("none",),
    ARGOS: ("none", "bfloat16", "int8"),
    BERGAMOT: ("int8",),
}
QUANTIZATIONS = tuple(dict.fromkeys(chain.from_iterable(FORMATS.values())))
PLACES = {
    SAVED_MODEL: capabilities.SAVED_MODEL,
    CTRANSLATE2: capabilities.CTRANSLATE2_FORMAT,
    LITERT: capabilities.LITERT,
    TRANSFORMERS: capabilities.TRANSFORMERS_FORMAT,
    ARGOS: capabilities.ARGOS_FORMAT,
    BERGAMOT: capabilities.BERGAMOT_FORMAT,
}
SENTENCEPIECE_OF = "sentencepiece.SentencePieceProcessor(model_file={file!r})"
SENTENCEPIECE_STEPS = """\
found = translator.translate_batch([{source}.encode("...", out_type=str)], \
beam_size={beam_size}, length_penalty={alpha}{more})
print({target}.decode(found[0].hypotheses[0]))"""
SUBWORDS_OF = "t2t_revival.data.vocabulary.subwords.SubwordVocabulary({file!r})"
MARIAN_OF = "t2t_revival.data.vocabulary.marian.MarianVocabulary({file!r}, is_target={is_target})"
SUBWORD_STEPS = """\
found = translator.translate_batch([[{source}.pieces[token] for token in {source}.encode("...")]], \
beam_size={beam_size}, length_penalty={alpha})
print({target}.decode(map({target}.pieces.index, found[0].hypotheses[0])))"""
BERGAMOT_STEPS = """\
next: cd {folder} && npm install --prefix . @browsermt/bergamot-translator && python3 -m http.server
and open http://localhost:8000"""
LITERT_STEPS = """\
interpreter = ai_edge_litert.interpreter.Interpreter({model!r})
found = interpreter.get_signature_runner()(inputs=numpy.array([[*{source}.encode("..."), {eos}]], "int32"))
print({target}.decode([int(token) for token in found["outputs"][0, 0] if token > {eos}]))"""


@dataclass(frozen=True)
class ExporterFlags(EnsembleFlags, NormalizeFlags):
    """The flags of t2t-exporter."""

    export_dir: str = flag(
        "",
        "Folder for the versions; by default output_dir/export, or output_dir/ and the name of another "
        "format.",
    )
    decode_hparams: str = flag(
        "",
        f"{DECODE_HPARAMS} They are the default of requests, and fixed in LiteRT's and bergamot's formats; "
        "CTranslate2 takes them at each call, as in the example that is printed.",
    )
    quantize: str | None = flag(
        None,
        "Type of the stored weights and of products with them: float32 (none, the default of all formats but "
        "bergamot's), bfloat16, or int8, which a SavedModel does not have: its int8_weights stores int8 and "
        "computes in bfloat16.",
        choices=QUANTIZATIONS,
    )
    format: str = flag(
        SAVED_MODEL,
        "Format of the export; ctranslate2 needs the package of that name. litert is for phones, embedded "
        "devices, and single lines on CPUs. transformers is a MarianMT folder for the "
        "Hugging Face Hub, argos a package for Argos Translate and LibreTranslate, bergamot a model for "
        "browsers, by WebAssembly.",
        choices=tuple(FORMATS),
    )


def _export(flags: ExporterFlags) -> None:
    folder = flags.open_model()
    options, shortlist = decode_options(flags.decode_hparams, folder.run, flags.normalize), None
    of_call = {"ensemble": flags.ensemble, "int8": flags.quantize == INT8}
    capabilities.check(options.asked(of_call), PLACES[flags.format])
    capabilities.check_held(folder.hparams, PLACES[flags.format])
    if flags.ensemble and not flags.export_dir:
        raise T2TError("--export_dir is missing: an ensemble belongs to no output_dir")
    if options.has_shortlist:
        shortlist = Translations.load(folder.path, folder.vocabularies.fingerprint)
        options = replace(options, shortlist=OFF)
    quantizations = FORMATS[flags.format]
    quantize = flags.quantize or quantizations[0]
    if quantize not in quantizations:
        raise T2TError(f"--format={flags.format} has --quantize={', '.join(quantizations)}, not {quantize}")
    default = folder.path / ("export" if flags.format == SAVED_MODEL else flags.format)
    export_dir = Path(flags.export_dir).expanduser() if flags.export_dir else default
    if flags.format == SAVED_MODEL:
        check_for_tensorflow(export_dir.absolute(), "give another --export_dir")
    check_writable(export_dir)
    tensorflow_setup.load_tensorflow_alone()
    _write(flags, folder, options, export_dir, quantize, shortlist)


def _write(
    flags: ExporterFlags,
    folder: ModelFolder,
    options: DecodeHParams,
    export_dir: Path,
    quantize: str,
    shortlist: Translations | None,
) -> None:
    """Loads the model, writes it, and prints what can be done with it."""
    from t2t_revival.addons.argos_format import export_argos
    from t2t_revival.addons.bergamot_format import export_bergamot
    from t2t_revival.addons.litert import export_litert
    from t2t_revival.addons.transformers_format import export_transformers
    from t2t_revival.serving.export import export
    from t2t_revival.serving.module import PRECISIONS

    served = flags.format == SAVED_MODEL
    precision = PRECISIONS[quantize] if served else "float32"
    translator, path, step = flags.load_translator(
        folder, options, precision=precision, constant_weights=False
    )
    say(f"exporting {path} ({step})")
    heads = None if flags.ensemble else AlignmentHeads.find(folder.path, translator.model.hparams)
    if served:
        written = export(translator, export_dir, folder.run.problem, quantize, heads)
        trees = translator.problem is not None and translator.problem.separates_words
        following = _next_command(export_dir.absolute(), folder.run.problem, trees, flags.t2t_usr_dir)
    elif flags.format == CTRANSLATE2:
        mapped = format_vocabulary_map(shortlist, folder.vocabularies) if shortlist else ""
        written = export_ctranslate2(translator, export_dir, quantize, heads, mapped)
        following = _ctranslate2_example(written, translator, options)
    elif flags.format == ARGOS:
        written = export_argos(translator, export_dir, quantize, _about(folder, step))
        following = f"next: argospm install {shlex.quote(str(next(written.glob('*.argosmodel'))))}"
    elif flags.format == BERGAMOT:
        written = export_bergamot(translator, export_dir, shortlist)
        following = BERGAMOT_STEPS.format(folder=shlex.quote(str(written)))
    elif flags.format == TRANSFORMERS:
        written = export_transformers(translator, export_dir, _about(folder, step))
        following = f"next, in Python: transformers.AutoModelForSeq2SeqLM.from_pretrained({str(written)!r})"
    else:
        written = export_litert(translator, export_dir, quantize)
        following = _litert_example(written, translator)
    print(f"{step}: {written}\n{following}")


def _about(folder: ModelFolder, step: str) -> str:
    """Returns what people are told of a training beside its model."""
    best = best_row(folder.path, "bleu")
    score = f" BLEU of its dev split: {best['bleu']:.1f}." if best else ""
    return f"Trained by t2t_revival with the hparams set `{folder.run.hparams_set}`, {step}.{score}"


def _next_command(export_dir: Path, name: str, trees: bool, usr_dir: str | None) -> str:
    folder = shlex.quote(str(export_dir))
    own = {"problem": name, "t2t_usr_dir": usr_dir} if trees else {}  # which makes trees of what comes back
    server = {"server": "localhost:8500", "servable_name": name}
    return (
        f"next: {CommandLine('t2t-query-server', **own, saved_model=export_dir)}\n"
        f"or serve it with a page: {CommandLine('t2t-server', **own, saved_model=export_dir)}\n"
        f"or by TensorFlow Serving: cd {folder} && docker compose up, or without a container:\n"
        f"tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name={name} "
        f"--model_base_path={folder} --enable_batching "
        f"--batching_parameters_file={folder}/batching_parameters.txt --tensorflow_intra_op_parallelism=1\n"
        f"and ask it: {CommandLine('t2t-query-server', **own, **server)}"
    )


def _litert_example(folder: Path, translator: Translator) -> str:
    from t2t_revival.addons.litert import MODEL

    opening, sides = _opening(folder, translator)
    steps = LITERT_STEPS.format(model=str(folder / MODEL), eos=EOS, **sides)
    return f"next, in Python, with ai-edge-litert:\n{opening}{steps}"


def _ctranslate2_example(folder: Path, translator: Translator, options: DecodeHParams) -> str:
    opening, sides = _opening(folder, translator)
    steps = SUBWORD_STEPS if translator.vocabulary.path.suffix in (SUBWORDS, MARIAN) else SENTENCEPIECE_STEPS
    free = "it searches without the constraint to trees\n" if options.constrained else ""
    more = ", disable_unk=True" if translator.vocabularies.targets.banned else ""
    steps = steps.format(
        beam_size=options.beam_size, alpha=options.normalize or options.alpha, more=more, **sides
    )
    return f"{free}next, in Python:\ntranslator = ctranslate2.Translator({str(folder)!r})\n{opening}{steps}"


def _opening(folder: Path, translator: Translator) -> tuple[str, dict[str, str]]:
    """Returns the lines that open the vocabularies, and the variables of that of "source" and "target"."""
    source, target = translator.vocabularies
    names = ("source", "target") if source is not target else ("pieces", "pieces")
    opened = {}
    for name, file in zip(names, vocabulary_names(translator.vocabularies), strict=True):
        kind = {SUBWORDS: SUBWORDS_OF, MARIAN: MARIAN_OF}.get(Path(file).suffix, SENTENCEPIECE_OF)
        opened[name] = f"{name} = {kind.format(file=str(folder / file), is_target=name == 'target')}\n"
    return "".join(opened.values()), dict(zip(("source", "target"), names, strict=True))


main = Command(ExporterFlags, _export, __doc__)
