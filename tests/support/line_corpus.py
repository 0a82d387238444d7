"""A small corpus of lines, and the problem of its data."""

import random

from t2t_revival import registry
from t2t_revival.data.sources import source

NOUNS = ("dog", "cat", "house", "tree", "garden", "river", "child", "teacher", "window", "street")


def sentences(count, seed=0):
    draw = random.Random(seed)
    for number in range(count):
        one, two = draw.choice(NOUNS), draw.choice(NOUNS)
        yield f"the {one} number {number} sees a {two}", f"das {one}chen Nummer {number} sieht ein {two}lein"


def houses(numbers):
    return [(f"the dog sees {number} houses", f"der Hund sieht {number} Häuser") for number in numbers]


def write_corpus(folder, train=300, dev=20, languages=("en", "de")):
    pairs = {split: list(sentences(count, seed=split)) for split, count in (("train", train), ("dev", dev))}
    return write_pairs(folder, pairs, languages)


def write_pairs(folder, pairs, languages=("en", "de")):
    folder.mkdir(exist_ok=True)
    for split, lines in pairs.items():
        for side, language in enumerate(languages):
            write_lines(folder / f"{split}.{language}", [pair[side] for pair in lines])
    return folder


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def translation(corpus, **settings):
    """The problem whose data is made of a corpus, or of that of a data_dir for `None`."""
    source = None if corpus is None else str(corpus)
    return registry.problem("translate_ende", data_source=source, **{"vocab_size": 330, **settings})


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def interrupt_at(stage, pairs):
    def progress(now, done, total):
        if now == stage and done >= pairs:
            raise KeyboardInterrupt

    return progress


def flip(content):
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def opened(name, **more):
    """A source of pairs from English to German."""
    return source(str(name), "en", "de", **more)


def all_pairs(opened_source, split="train"):
    return list(opened_source.pairs(split, 0, opened_source.count(split)))
