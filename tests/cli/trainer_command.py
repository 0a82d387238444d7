"""t2t-trainer on a small model, called by tests in their own process."""

from pathlib import Path

from t2t_revival.cli import trainer
from tests.support.command_lines import last_of_each

SMALL = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=512,max_length=64,train_steps=4"
)


def train(data: Path, out: Path, *flags: str, hparams: str = SMALL) -> int:
    """Runs the command; returns its exit status."""
    usual = {
        "problem": "translate_ende",
        "hparams_set": "tiny",
        "data_dir": data,
        "output_dir": out,
        "hparams": hparams,
        "eval_bleu_sentences": 0,
    }
    return trainer.main(
        last_of_each(["t2t-trainer", *(f"--{name}={value}" for name, value in usual.items()), *flags])
    )
