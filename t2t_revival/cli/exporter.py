"""`t2t-exporter`: writes a trained model as a SavedModel for TensorFlow Serving."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from absl import flags

from t2t_revival.cli import common, problem_flags, run_flags

USAGE = """
t2t-exporter --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--export_dir=DIR]

Writes a trained model, vocabulary and search included, as one SavedModel: strings in, strings out.
TensorFlow Serving takes export_dir as it is and serves its newest version.
"""


def command_flags() -> flags.FlagValues:
    """The flags of t2t-exporter."""
    values = common.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    run_flags.define_checkpoint_path(values)
    flags.DEFINE_string(
        "export_dir", None, "Where versions are written; by default output_dir/export.", flag_values=values
    )
    flags.DEFINE_string(
        "decode_hparams",
        "",
        'Changes to how it decodes where a call says nothing, as in "beam_size=4,return_beams=True".',
        flag_values=values,
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Entry point of `t2t-exporter`."""
    return common.run(command_flags(), USAGE, _export, argv)


def _export(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    from t2t_revival.decoding.options import DecodeHParams

    output_dir, run = run_flags.open_run(values)
    DecodeHParams.parse(values.decode_hparams, run.decode_hparams)
    export_dir = Path(values.export_dir).expanduser() if values.export_dir else output_dir / "export"
    common.load_tensorflow(values)
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.serving.export import export

    translator = Translator.load(output_dir, values.checkpoint_path, values.decode_hparams)
    written = export(translator, export_dir, run.problem)
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    print(f"step {checkpoint.step:,}{', an average' if checkpoint.averaged else ''}: {written}")
    folder = shlex.quote(str(export_dir.absolute()))
    print(f"next: cd {folder} && docker compose up, or without a container:")
    print(
        f"tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name={run.problem} "
        f"--model_base_path={folder} --enable_batching "
        f"--batching_parameters_file={folder}/batching_parameters.txt --tensorflow_intra_op_parallelism=1"
    )


if __name__ == "__main__":
    sys.exit(main())
