"""`t2t-import-checkpoint`: converts a model of tensor2tensor or OPUS-MT to an output_dir.

t2t-import-checkpoint --checkpoint=DIR_OR_PREFIX --output_dir=DIR

Writes an output_dir that the other commands use, from one of these:

- A checkpoint of tensor2tensor's model `transformer`, with the hparams.json and flags.txt beside it and its
  vocabulary, vocab.*.subwords. Versions 1.4 to 1.15 can be read.
- A MarianMT folder of transformers, as OPUS-MT publishes them: config.json, model.safetensors or
  pytorch_model.bin, source.spm, target.spm and vocab.json. hf:Helsinki-NLP/opus-mt-en-de is downloaded.
- A model of Marian: a .npz or .bin file, or a folder with one, decoder.yml, and the vocabularies that it
  names: SentencePiece models, or yaml with source.spm and target.spm beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival import registry
from t2t_revival.addons.imports import kinds
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.problem_flags import ProblemFlags
from t2t_revival.decoding.addons import HUB
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model_folder import IMPORTED_DATA

if TYPE_CHECKING:
    from t2t_revival.addons.imports.model import ImportResult

OF_T2T = ("hparams_set", "target_space_id", "ignored_hparams")  # flags
OF_M2M100 = ("source_language", "target_language", "keep_vocab_of")
REFUSED = {
    kinds.T2T: OF_M2M100,
    kinds.MARIAN: (*OF_T2T, *OF_M2M100),
    kinds.TRANSFORMERS: (*OF_T2T, *OF_M2M100, "vocab_file"),
    kinds.M2M100: (*OF_T2T, "vocab_file"),
}


@dataclass(frozen=True)
class ImportFlags(ProblemFlags):
    checkpoint: str = flag(
        "",
        "T2T's output_dir, whose newest checkpoint is imported, or a prefix: DIR/model.ckpt-1000; or a "
        "MarianMT folder of transformers, or hf:OWNER/NAME, or Marian's FILE.npz or its folder.",
        missing=" is missing: it names the model: a folder, or a checkpoint of T2T",
    )
    output_dir: str = flag(
        "",
        "Folder for the model; must not hold one.",
        missing=" is missing: it names the folder for the model",
    )
    vocab_file: str = flag(
        "",
        "T2T's or Marian's vocabulary, or two, SOURCE,TARGET (T2T's in the order of PROBLEM for its _rev); "
        "by default what is beside the checkpoint, in data_dir of flags.txt, or in decoder.yml.",
    )
    hparams_set: str | None = flag(
        None, "Hparams set of the model; by default T2T's, or the nearest of T2T's sets."
    )
    target_space_id: int = flag(0, "T2T's target_space_id, for a problem of your own that sets it.")
    ignored_hparams: tuple[str, ...] = flag(
        (), "Hyperparameters in hparams.json to ignore, since they do not change the model."
    )
    source_language: str = flag(
        "", "Language of sources by M2M100's or NLLB's code, such as fin_Latn; by default the problem's."
    )
    target_language: str = flag("", "Language of outputs, likewise.")
    keep_vocab_of: str = flag(
        "",
        "Of M2M100 or NLLB, keep only the pieces that a text needs, and the characters of its scripts: text "
        "files of both languages, FILE,FILE, or a data_source.",
    )


def _import(flags: ImportFlags) -> None:
    flags.import_usr_dir()
    tensorflow_setup.load_tensorflow_alone()
    output_dir = Path(flags.output_dir).expanduser()
    imported = _imported(flags, Path(flags.checkpoint).expanduser(), output_dir)
    folder = imported.folder
    run = folder.run
    subtokens = [f"{size:,} subtokens in {name}" for name, size in imported.vocab_sizes.items()]
    print(f"step {imported.step:,}: {imported.parameters:,} parameters, {' and '.join(subtokens)}")
    print(f"hparams_set: {run.hparams_set}{_changes(run.hparams_set, folder.hparams)}")
    print("not imported: the optimizer's state; a training resumes at this step with moments of zero")
    for note in imported.notes:
        print(note)
    print(f"output_dir: {output_dir}")
    where = {"output_dir": output_dir, "t2t_usr_dir": flags.t2t_usr_dir}
    print(f"next: {CommandLine('t2t-decoder', **where, decode_interactive=True)}")
    data_dir, vocab_files = output_dir / IMPORTED_DATA, folder.vocabulary_files
    print(
        "or make data to evaluate it and to train on, from a corpus of your own with --data_source=FOLDER: "
        + registry.problem(run.problem).datagen_command(data_dir, vocab_files).message(flags.t2t_usr_dir)
    )
    names = {"problem": run.problem, "hparams_set": run.hparams_set}
    data = {"data_dir": data_dir, "vocab_file": vocab_files}
    print(f"and train on: {CommandLine('t2t-trainer', **names, **where, **data)}")


def _imported(flags: ImportFlags, checkpoint: Path, output_dir: Path) -> ImportResult:
    """Imports a model by the kind of its files."""
    from t2t_revival.addons.imports import hub, m2m100, marian, t2t, transformers

    if flags.checkpoint.startswith(HUB):
        checkpoint = hub.download(flags.checkpoint)
    vocab_files = [Path(name).expanduser() for name in flags.vocab_file.split(",") if name]
    kind = kinds.kind_to_import(checkpoint)
    for name in REFUSED.get(kind, ()):
        if getattr(flags, name):
            raise T2TError(f"--{name} is not for models of {kind.name}: leave it out")
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    if kind is kinds.TRANSFORMERS:
        return transformers.import_folder(folder, output_dir, flags.problem)
    if kind is kinds.M2M100:
        if not flags.problem:
            raise T2TError("a model of many languages: give --problem, such as --problem=translate_fi_en")
        languages = flags.source_language, flags.target_language
        pair = m2m100.Pair(flags.problem, *languages, flags.keep_vocab_of)
        return m2m100.import_folder(folder, output_dir, pair)
    if kind is kinds.MARIAN:
        return marian.import_model(checkpoint, output_dir, flags.problem, vocab_files)
    settings = flags.problem, flags.hparams_set, flags.target_space_id, flags.ignored_hparams
    return t2t.import_checkpoint(t2t.ImportSource(checkpoint, vocab_files, *settings), output_dir)


def _changes(hparams_set: str, hparams: HParams) -> str:
    """Describes the hyperparameters in which the model differs from its hparams set."""
    named = registry.hparams(hparams_set).architecture()
    changes = [
        f"{name}={value}" for name, value in hparams.architecture().items() if named.get(name, value) != value
    ]
    return f", but with {', '.join(changes)} (in hparams.json)" if changes else ""


main = Command(ImportFlags, _import, __doc__)
