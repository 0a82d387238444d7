"""Models that transformers can hold, MarianMT and M2M100, and where they have the pieces of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from t2t_revival.addons.imports import m2m100
from t2t_revival.addons.imports.kinds import M2M100_TYPE
from t2t_revival.addons.imports.languages import M2M100_CODES, NLLB_CODES
from t2t_revival.addons.imports.transformers import ARCHITECTURE, SPMS, TABLE
from t2t_revival.data.vocabulary.marian import MarianVocabulary, check_plain
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.decoding.translator import Translator

OF_MARIAN = {  # settings of all models of this kind
    "architectures": [ARCHITECTURE],
    "model_type": "marian",
    "static_position_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "share_encoder_decoder_embeddings": True,
}
OF_M2M100 = {
    "architectures": [m2m100.ARCHITECTURE],
    "model_type": M2M100_TYPE,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
CODES = M2M100_CODES["m2m100"]
CODE_OF = {NLLB_CODES.get(code, code): code for code in reversed(CODES)}  # by NLLB's three letters


class Layout(NamedTuple):
    """A kind of models, and the rows of their embeddings.

    Attributes:
        settings: of config.json.
        special: ids there, of config.json and generation_config.json.
        generation: settings of generation_config.json.
        tokenizer: settings of tokenizer_config.json.
        files: contents of the tokenizer's files.
        rows: the id here of each row there; -1 where there is none.
        banned: rows that are never produced.
    """

    settings: Mapping[str, Any]
    special: Mapping[str, int]
    generation: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    files: Mapping[str, bytes | Mapping[str, int]]
    rows: np.ndarray
    banned: set[int]


def layout_of(translator: Translator) -> Layout:
    """Returns the layout for a model: M2M100's if outputs start with EOS's vector, else MarianMT's.

    Raises:
        T2TError: the vocabulary is of another kind, or there are two.
    """
    return _m2m100(translator) if translator.model.hparams.start_token else _marian(translator)


def _marian(translator: Translator) -> Layout:
    vocabularies = translator.vocabularies
    pieces, targets = vocabularies.inputs.pieces, vocabularies.targets
    ids, files = _marian_table(vocabularies)
    source, target = (getattr(translator.problem, f"{side}_lang", "") for side in ("source", "target"))
    special = {
        "pad_token_id": ids[pieces[PAD]],
        "eos_token_id": ids[pieces[EOS]],
        "decoder_start_token_id": ids[pieces[PAD]],
        "forced_eos_token_id": ids[pieces[EOS]],
    }
    tokenizer = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": False,
        "source_lang": source,
        "target_lang": target,
    }
    rows = _rows(ids, pieces, len(ids))
    banned = {ids[pieces[PAD]], ids[pieces[targets.banned]]}
    return Layout(OF_MARIAN, special, {}, tokenizer, files, rows, banned)


def _marian_table(vocabularies: Vocabularies) -> tuple[dict[str, int], dict[str, bytes | dict[str, int]]]:
    """Returns the row of each piece there, and the tokenizer's files."""
    inputs, targets = vocabularies
    if vocabularies.separate or isinstance(inputs, SubwordVocabulary):
        raise T2TError("transformers' format has one SentencePiece vocabulary; this model has another kind")
    check_plain(inputs, "transformers' MarianMT")
    if isinstance(inputs, MarianVocabulary) and isinstance(targets, MarianVocabulary):
        ids = dict(inputs.marian_ids)
        ids.setdefault(inputs.pieces[PAD], len(ids))
        models = inputs.model, targets.model
    else:
        ids = {piece: token for token, piece in enumerate(inputs.pieces)}
        models = inputs.content, inputs.content
    return ids, {**dict(zip(SPMS, models, strict=True)), TABLE: ids}


def _m2m100(translator: Translator) -> Layout:
    inputs = translator.vocabularies.inputs
    if translator.vocabularies.separate or not (isinstance(inputs, MarianVocabulary) and inputs.around):
        raise T2TError(
            "transformers' M2M100 has one vocabulary, with languages before texts, as an import of M2M100 or "
            "NLLB without legacy_behaviour; this model has another kind: give --format=ctranslate2"
        )
    source, target = (inputs.around[side].before for side in ("source", "target"))
    table, codes, ids = _m2m100_table(inputs, source, target)
    names = "bos_token_id", "pad_token_id", "eos_token_id"
    special = {name: ids[piece] for name, piece in zip(names, m2m100.SPECIAL_PIECES, strict=False)}
    size = max(max(ids.values()) + 1, len(table) + len(M2M100_CODES[codes]))
    tokenizer = {
        "tokenizer_class": "M2M100Tokenizer",
        "language_codes": codes,
        "src_lang": _code(source),
        "tgt_lang": _code(target),
        "additional_special_tokens": [f"__{code}__" for code in M2M100_CODES[codes]],
    }
    rows = _rows(ids, inputs.pieces, size)
    return Layout(
        OF_M2M100,
        {**special, "decoder_start_token_id": ids[inputs.pieces[EOS]]},
        {"forced_bos_token_id": ids[target]},
        tokenizer,
        {m2m100.SPM: inputs.model, TABLE: table},
        rows,
        {ids[inputs.pieces[PAD]], *np.flatnonzero(rows < 0).tolist()},
    )


def _m2m100_table(
    vocabulary: MarianVocabulary, source: str, target: str
) -> tuple[dict[str, int], str, dict[str, int]]:
    """Returns the table of M2M100Tokenizer, its language_codes, and the row of each piece there.

    That tokenizer cuts as SentencePiece does here, also with the languages of NLLB, whose own one does not.
    Its languages follow the table, then what it does not know. Rows that are missing here leave no gaps.
    """
    pieces = sorted(vocabulary.marian_ids, key=vocabulary.marian_ids.__getitem__)
    silent = {vocabulary.pieces[token] for token in vocabulary.silent}
    languages: dict[str, str] = {}  # by code
    for piece in [source, target, *(piece for piece in pieces if piece in silent)]:
        if code := _code(piece):
            languages.setdefault(code, piece)
    if missing := [piece for piece in (source, target) if languages.get(_code(piece)) != piece]:
        raise T2TError(
            f"transformers' M2M100Tokenizer has no code of its own for the language {missing[0]}: give "
            "--format=ctranslate2"
        )
    codes = "wmt21" if {*languages} == {*M2M100_CODES["wmt21"]} else "m2m100"
    first = min(pieces.index(piece) for piece in languages.values())
    own = [
        piece
        for at, piece in enumerate(pieces)
        if piece not in silent or piece in m2m100.SPECIAL_PIECES or (at < first and source[:2] == "__")
    ]
    table = {piece: row for row, piece in enumerate(own)}
    at = {code: len(own) + number for number, code in enumerate(M2M100_CODES[codes])}
    ids = table | {piece: at[code] for code, piece in languages.items()}
    rest = (piece for piece in pieces if piece not in ids)
    return table, codes, ids | {piece: row for row, piece in enumerate(rest, len(own) + len(at))}


def _code(piece: str) -> str:
    """Returns M2M100's code of a language's piece; "" of other pieces, and of languages that have none."""
    code = piece.strip("_") if piece.startswith("__") else CODE_OF.get(piece.partition("_")[0], "")
    return code if code in CODES else ""


def _rows(ids: Mapping[str, int], pieces: list[str], size: int) -> np.ndarray:
    rows = np.full(size, -1)
    rows[[ids[piece] for piece in pieces]] = np.arange(len(pieces))
    return rows
