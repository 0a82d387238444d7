"""Trained models as bergamot-translator runs them: in browsers by WebAssembly, in Firefox, and natively."""

from __future__ import annotations

import hashlib
import json
import shlex
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from t2t_revival.addons.imports import marian_binary
from t2t_revival.addons.imports.kinds import MARIAN_CONFIG
from t2t_revival.addons.imports.layers import NEVER
from t2t_revival.addons.marian_format import MarianParts, Side, search_of, yaml_of
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.addons.shortlist import Translations
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.serving.export import Export

PAGE = Path(__file__).with_name("bergamot.html")
STEPS = """\
next: cd {folder} && npm install --prefix . @browsermt/bergamot-translator && python3 -m http.server
and open http://localhost:8000"""
ROWS, COLUMNS = 64, 8  # sizes of matrices are their multiples
LETTERS = 2  # of a language
SHORTLIST_MAGIC = 0xF11A48D5013417F5
NATIVE = {  # settings of the native engine; the package for browsers has its own
    "gemm-precision": "int8shiftAll",
    "alignment": "soft",
    "max-length-break": 128,
    "max-length-factor": 2.0,
    "mini-batch-words": 1024,
    "workspace": 128,
}


def export_bergamot(what: Export) -> tuple[Path, str]:
    """Writes a version; also returns the commands that open its page. See `write_bergamot`."""
    shortlist = cast("Translations | None", what.shortlist)
    version = what.write_version(lambda folder: write_bergamot(what.translator, folder, shortlist))
    return version, STEPS.format(folder=shlex.quote(str(version)))


def write_bergamot(translator: Translator, folder: Path, shortlist: Translations | None = None) -> None:
    """Writes the model of Marian, with matrices as int8, its vocabularies, shortlist and settings.

    index.html is a page that translates as one types, by the npm package @browsermt/bergamot-translator and
    registry.json; config.yml is for the native engine.

    Args:
        translator: model, vocabulary and options; the model's precision is float32.
        folder: must not exist.
        shortlist: to which each search is limited. None writes none.

    Raises:
        T2TError: sizes are no multiples of 64, the vocabulary is T2T's, or the problem is not known or has
            languages of other than two letters.
    """
    hparams, options = translator.model.hparams, translator.options
    for name in ("hidden_size", "filter_size"):
        if (size := getattr(hparams, name)) % ROWS:
            raise T2TError(f"bergamot's format needs multiples of {ROWS}; this model has {name}={size}")
    sides = (getattr(translator.problem, f"{side}_lang", "") for side in ("source", "target"))
    languages = [side.partition("_")[0] for side in sides]
    if any(len(language) != LETTERS for language in languages):
        theirs = " and ".join(languages) if translator.problem else "none: give --t2t_usr_dir of its problem"
        raise T2TError(f"bergamot's format has languages of two letters, not {theirs}")
    parts, pair = MarianParts.of(translator, COLUMNS), "".join(languages)
    source, target = parts.source, parts.target
    files = {"model": (f"model.{pair}.intgemm8.bin", _model(parts, translator.vocabularies.targets.banned))}
    vocabularies = {"vocab": source} if parts.shared else {"srcvocab": source, "trgvocab": target}
    files |= {part: (f"{part}.{pair}.spm", side.model) for part, side in vocabularies.items()}
    if shortlist:
        files["lex"] = (f"lex.{pair}.s2t.bin", _shortlist(shortlist, source, target))
    names = {part: name for part, (name, _) in files.items()}
    search = {**search_of(options), "skip-cost": options.beam_size == 1}
    native = {
        "relative-paths": True,
        "models": [names["model"]],
        "vocabs": [names.get("vocab", names.get(f"{side}vocab")) for side in ("src", "trg")],
        **({"shortlist": [names["lex"], False]} if shortlist else {}),
    }
    registry: dict[str, Any] = {
        part: {
            "name": name,
            "size": len(content),
            "expectedSha256Hash": hashlib.sha256(content).hexdigest(),
        }
        for part, (name, content) in files.items()
    }
    registered = json.dumps({pair: registry | {"config": search}}, indent=2) + "\n"
    files["native"] = "config.yml", yaml_of(native | NATIVE | search)
    files["registry"] = "registry.json", registered.encode()
    files["page"] = "index.html", PAGE.read_bytes()
    folder.mkdir()
    for name, content in files.values():
        (folder / name).write_bytes(content)


def _model(parts: MarianParts, banned: int) -> bytes:
    bias = parts.weights["decoder_ff_logit_out_b"]
    bias[0, : len(parts.target.rows)][np.isin(parts.target.rows, (PAD, banned))] = NEVER
    settings = yaml_of(parts.settings) + b"\0"
    items = [_item(name, array) for name, array in sorted(parts.weights.items())]
    items.append(marian_binary.Item(MARIAN_CONFIG, marian_binary.INT8, (len(settings),), settings))
    return marian_binary.write(items)


def _item(name: str, array: np.ndarray) -> marian_binary.Item:
    """Returns a tensor of the file: int8 and a scale of matrices, transposed but embeddings."""
    if len(array) == 1:
        return marian_binary.Item(name, marian_binary.FLOAT32, array.shape, array.tobytes())
    scale = np.float32(127 / (np.abs(array).max() or 1))
    rounded = np.rint(array * scale).astype(np.int8)
    data = (rounded if "Wemb" in name else rounded.T).tobytes() + scale.tobytes()
    return marian_binary.Item(name, marian_binary.INT8_MATRIX, array.shape, data)


def _shortlist(translations: Translations, source: Side, target: Side) -> bytes:
    """Returns Marian's binary format of a shortlist.

    The frequent pieces are in the list of EOS, which ends all sources.
    """
    numbers = {token: number for number, token in enumerate(target.rows.tolist())}
    lists, offsets = [], [0]
    for token in source.rows.tolist():
        best = [*translations.best[token].tolist(), *([] if translations.target_vocab_size else [token])]
        frequent = translations.frequent.tolist() if token == EOS else []
        allowed = {numbers[one] for one in (EOS, *best, *frequent) if one != PAD and one in numbers}
        lists += sorted(allowed)
        offsets.append(len(lists))
    content = struct.pack(
        f"<4Q{len(offsets)}Q{len(lists)}I",
        *(0, translations.best.shape[1], len(offsets), len(lists)),
        *offsets,
        *lists,
    )
    checksum = 0  # Boost's hash_combine of whole words
    for (word,) in struct.iter_unpack("<Q", content[: len(content) // 8 * 8]):
        checksum ^= (word + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)) % 2**64
    return struct.pack("<QQ", SHORTLIST_MAGIC, checksum) + content
