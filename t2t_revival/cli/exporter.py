"""`t2t-exporter`: writes a trained model as a SavedModel for TensorFlow Serving, or for other engines.

t2t-exporter --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--export_dir=DIR]

Exports a trained model, vocabulary and search included, as one SavedModel: strings in, strings out.
TensorFlow Serving serves the newest version in export_dir. Other formats are for other engines; they have a
model's weights and vocabulary, or the search too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from t2t_revival.addons.formats import DEFAULT, FORMATS
from t2t_revival.addons.shortlist import Translations
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import say
from t2t_revival.cli.support.run_flags import DECODE_HPARAMS, EnsembleFlags, decode_options
from t2t_revival.curve_files import best_row
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.options import INT8, OFF, DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.files import check_for_tensorflow, check_writable

QUANTIZATIONS = tuple(dict.fromkeys(chain.from_iterable(row.quantizations for row in FORMATS.values())))


@dataclass(frozen=True)
class ExporterFlags(EnsembleFlags, NormalizeFlags):
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
        DEFAULT,
        "Format of the export: " + "; ".join(f"{name}, {row.meaning}" for name, row in FORMATS.items()) + ".",
        choices=tuple(FORMATS),
    )


def _export(flags: ExporterFlags) -> None:
    folder, row = flags.open_model(), FORMATS[flags.format]
    options, shortlist = decode_options(flags.decode_hparams, folder.run, flags.normalize), None
    of_call = {"ensemble": flags.ensemble, "int8": flags.quantize == INT8}
    asked = options.asked(of_call)
    own = {name for name, value in folder.run.decode_hparams.items() if value == getattr(options, name)}
    if refused := sorted(own & asked.keys() - row.place.features):
        defaults = ",".join(f"{name}={getattr(DecodeHParams, name)}" for name in refused)
        raise T2TError(
            f"{row.place.name} does not support {asked[refused[0]]}, which is this model's own: give "
            f"--decode_hparams={defaults}"
        )
    capabilities.check(asked, row.place)
    capabilities.check_held(folder.hparams, row.place_of(folder.hparams))
    if flags.ensemble and not flags.export_dir:
        raise T2TError("--export_dir is missing: an ensemble belongs to no output_dir")
    if options.has_shortlist:
        shortlist = Translations.load(folder.path, folder.vocabularies.fingerprint)
        options = replace(options, shortlist=OFF)
    quantize = flags.quantize or row.quantizations[0]
    if quantize not in row.quantizations:
        has = ", ".join(row.quantizations)
        raise T2TError(f"--format={flags.format} has --quantize={has}, not {quantize}")
    default = folder.path / ("export" if flags.format == DEFAULT else flags.format)
    export_dir = Path(flags.export_dir).expanduser() if flags.export_dir else default
    if flags.format == DEFAULT:
        check_for_tensorflow(export_dir.absolute(), "give another --export_dir")
    check_writable(export_dir)
    tensorflow_setup.load_tensorflow_alone()

    from t2t_revival.serving.export import Export
    from t2t_revival.serving.module import PRECISIONS

    precision = PRECISIONS[quantize] if flags.format == DEFAULT else "float32"
    translator, path, step = flags.load_translator(
        folder, options, precision=precision, constant_weights=False
    )
    say(f"exporting {path} ({step})")
    heads = None if flags.ensemble else AlignmentHeads.find(folder.path, translator.model.hparams)
    name, about = folder.run.problem, _about(folder, step)
    what = Export(translator, export_dir, name, quantize, about, heads, shortlist, flags.t2t_usr_dir)
    version, following = row.export(what)
    print(f"{step}: {version}\n{following}")


def _about(folder: ModelFolder, step: str) -> str:
    """Returns what people are told of a training beside its model."""
    best = best_row(folder.path, "bleu")
    score = f" BLEU of its dev split: {best['bleu']:.1f}." if best else ""
    return f"Trained by t2t_revival with the hparams set `{folder.run.hparams_set}`, {step}.{score}"


main = Command(ExporterFlags, _export, __doc__)
