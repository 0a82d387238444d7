"""`t2t-shortlist`: learns from the training pairs which pieces may translate which.

t2t-shortlist --problem=translate_ende --hparams_set=small [--output_dir=DIR] [--data_dir=DIR]

Learns the most probable translations of each piece of the vocabulary from the training pairs (IBM model 1),
and writes them to output_dir/shortlist.npz. With --engine=ctranslate2 --decode_hparams="shortlist=on", the
scores of a batch's possible translations are computed only, instead of the whole vocabulary's.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2t_revival.addons.shortlist import Translations, coverage
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.messages import ProgressBar
from t2t_revival.cli.support.run_flags import SPLIT_DIR, RunFlags
from t2t_revival.decoding.options import CTRANSLATE2
from t2t_revival.errors import CommandLine
from t2t_revival.problems.problem import DEV, TRAIN
from t2t_revival.utils.files import check_writable


@dataclass(frozen=True)
class ShortlistFlags(RunFlags):
    data_dir: str | None = flag(None, SPLIT_DIR)
    translations: int = flag(50, "Translations of a piece that are in the shortlist of its line.", least=1)
    frequent: int = flag(200, "Most frequent target pieces, which are in all shortlists.", least=1)
    max_pairs: int = flag(1_000_000, "Training pairs to learn from, spread over all of them.", least=1)


def _learn(flags: ShortlistFlags) -> None:
    folder = flags.open_model()
    data = folder.own_data(flags.data_dir)
    check_writable(folder.path)
    tensorflow_setup.load_tensorflow()
    from t2t_revival.addons.lexicon import learn_translations
    from t2t_revival.data.examples import read_pairs

    vocabularies = folder.vocabularies
    pairs = read_pairs(data.split(TRAIN), flags.max_pairs)
    with ProgressBar("iterations") as bar:
        learned = learn_translations(
            pairs,
            vocabularies.inputs.size,
            flags.translations,
            flags.frequent,
            bar.update,
            vocabularies.target_size,
        )
    sizes = vocabularies.fingerprint, vocabularies.target_size or 0
    found = Translations(*learned, *sizes, data.fingerprint(TRAIN))
    path = found.save(folder.path)
    size, share = coverage(found, read_pairs(data.split(DEV), flags.max_pairs))
    print(f"learned from {len(pairs.inputs.lengths):,} pairs: {path}")
    print(
        f"dev: {size:,.0f} of {vocabularies.targets.size:,} pieces in the shortlist of a line, with "
        f"{share:.1%} of its target's pieces"
    )
    decoding = CommandLine("t2t-decoder", **flags.named, engine=CTRANSLATE2, decode_hparams="shortlist=on")
    print(f"next: {decoding}")


main = Command(ShortlistFlags, _learn, __doc__)
