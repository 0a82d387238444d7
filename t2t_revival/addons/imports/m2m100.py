"""M2M100 and NLLB-200 of transformers: their folder as an output_dir for one pair of their languages.

Their tokenizers put the source's language before a text and EOS after it; outputs start with EOS and the
target's language. Here these languages belong to the vocabulary, see `data.vocabulary.marian`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from t2t_revival import registry
from t2t_revival.addons.imports import tensors, trimming
from t2t_revival.addons.imports.kinds import CONFIG, M2M100_TYPE
from t2t_revival.addons.imports.languages import M2M100_CODES, language_piece
from t2t_revival.addons.imports.layers import SHARED, SOFTMAX, SOURCE, TARGET, Layers
from t2t_revival.addons.imports.model import (
    ImportResult,
    check_config,
    check_unused,
    one_way_problem,
    reading,
    vocabulary_files,
)
from t2t_revival.addons.imports.transformers import (
    AGAIN,
    TABLE,
    decode_hparams,
    read_weights,
    tokenizer_settings,
    with_sizes_of,
)
from t2t_revival.data.vocabulary.marian import EOS_PIECE, PAD_PIECE, UNKNOWN_PIECE, Around, in_order
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.utils import checked_json

HPARAMS_SET = "m2m100"
ARCHITECTURE = "M2M100ForConditionalGeneration"
SPM, FAST, SPECIAL = "sentencepiece.bpe.model", "tokenizer.json", "special_tokens_map.json"
OTHER_NAMES = (SOURCE, TARGET, SOFTMAX)  # of the shared embeddings
SPECIAL_PIECES = ("<s>", PAD_PIECE, EOS_PIECE, UNKNOWN_PIECE)  # of both, in the order of their ids


@dataclass(frozen=True)
class Pair:
    """The part of a model that is imported.

    Attributes:
        problem: name.
        source, target: its languages by the model's codes; "" takes those of the problem.
        keep_vocab_of: text whose pieces are kept, see `trimming`; "" keeps all.
    """

    problem: str
    source: str = ""
    target: str = ""
    keep_vocab_of: str = ""


@dataclass(frozen=True)
class Tokenizer:
    """Files of M2M100Tokenizer or NllbTokenizer.

    Attributes:
        folder: the folder.
        spm: the SentencePiece model.
        table: the row of the embeddings of each piece; rows without a piece have names of their own.
        languages: the pieces of languages.
        tag_is_last: whether the source's language follows EOS, as `legacy_behaviour` says.
    """

    folder: Path
    spm: bytes
    table: dict[str, int]
    languages: Sequence[str]
    tag_is_last: bool

    @classmethod
    def load(cls, folder: Path, rows: int) -> Tokenizer:
        """Reads the files of a tokenizer for a model with so many rows of embeddings.

        Raises:
            T2TError: a file is corrupt, or of another model.
            OSError: one is missing.
        """
        settings = tokenizer_settings(folder)
        tensors.check_start(folder / SPM)
        spm = (folder / SPM).read_bytes()
        if (folder / TABLE).exists():
            table = checked_json.read(folder / TABLE, AGAIN)
            codes = M2M100_CODES.get(str(settings.get("language_codes")), M2M100_CODES["m2m100"])
            languages = [f"__{code}__" for code in codes]
            added = {piece: len(table) + number for number, piece in enumerate(languages)}
        else:
            table = _nllb_table(spm, folder / SPM)
            added = _nllb_added(folder, settings, len(table))
            languages = [piece for piece in added if piece[3:4] == "_"]
        whole = {**table, **added}
        used = set(whole.values())
        if len(used) < len(whole) or not used <= set(range(rows)):
            raise T2TError(
                f"{folder}: the tokenizer has {len(whole):,} pieces up to id {max(used):,}, and "
                f"{CONFIG} says vocab_size={rows:,}: they are of two models; {AGAIN}"
            )
        whole |= {f"<row {row}>": row for row in range(rows) if row not in used}
        return cls(folder, spm, whole, languages, bool(settings.get("legacy_behaviour")))

    def check(self, config: Mapping[str, Any]) -> None:
        """Checks that padding and EOS are those of the model; raises T2TError if they are not."""
        for piece, name in ((PAD_PIECE, "pad_token_id"), (EOS_PIECE, "eos_token_id")):
            if self.table.get(piece) != config[name]:
                raise T2TError(
                    f"{self.folder / CONFIG}: {name}={config[name]} is not {piece}, which is "
                    f"{self.table.get(piece)}: the tokenizer is of another model; {AGAIN}"
                )

    def sides(self, source: str, target: str) -> tuple[list[dict[str, int]], dict[str, Around]]:
        """Returns the table, or that of each side, and the pieces around texts, for two languages' pieces."""
        if not self.tag_is_last:
            return [self.table], {"source": Around(source), "target": Around(target)}
        # A source ends with EOS here, so that these two change their places: EOS, then the language.
        swapped = {**self.table, EOS_PIECE: self.table[source], source: self.table[EOS_PIECE]}
        return [swapped, self.table], {"source": Around(after=source), "target": Around(target)}


def import_folder(folder: Path, output_dir: Path, pair: Pair) -> ImportResult:
    """Writes an output_dir for two languages of M2M100 or NLLB.

    Args:
        folder: of transformers: config.json, the weights or their shards, sentencepiece.bpe.model, and
            vocab.json of M2M100, or tokenizer.json of NLLB.
        output_dir: must not hold a model.
        pair: the languages, and what to keep.

    Raises:
        T2TError: a file is missing or corrupt, the model is of another kind or lacks a language; output_dir
            holds a model, or the problem is not known. Nothing is written then.
    """
    check_unused(output_dir)
    problem = one_way_problem(pair.problem)
    with reading():
        config = checked_json.read(folder / CONFIG, AGAIN)
        _check(config, folder / CONFIG)
        tokenizer = Tokenizer.load(folder, config["vocab_size"])
        tokenizer.check(config)
    codes = pair.source or problem.source_lang, pair.target or problem.target_lang
    flags = "source_language", "target_language"
    source, target = (
        language_piece(code, tokenizer.languages, flag) for code, flag in zip(codes, flags, strict=True)
    )
    tables, around = tokenizer.sides(source, target)
    spm, notes = tokenizer.spm, []
    if pair.keep_vocab_of:
        kept = trimming.kept_pieces(spm, trimming.lines_of(pair.keep_vocab_of, problem))
        kept |= {*SPECIAL_PIECES, source, target}
        spm = trimming.trimmed(spm, kept)
        tables = [{piece: row for piece, row in table.items() if piece in kept} for table in tables]
        notes.append(f"kept {len(tables[0]):,} of {config['vocab_size']:,} pieces")
    vocabularies = vocabulary_files(problem.name, tables, [spm, spm], around)
    with reading():
        weights = read_weights(folder)
    for name in OTHER_NAMES if SHARED in weights else ():
        weights.pop(name, None)
    rows = [[table[piece] for piece in in_order(table, may_lack=True)] for table in tables]
    layers = Layers(
        folder, weights, hparams(config), rows, starts_with_padding=False, num_rows=config["vocab_size"]
    )
    return layers.save(
        problem.name, vocabularies, decode_hparams(folder, config), output_dir, HPARAMS_SET, notes
    )


def hparams(config: Mapping[str, Any]) -> HParams:
    """Returns the hyperparameters of a model by its config.json."""
    return with_sizes_of(registry.hparams(HPARAMS_SET), config).replace(
        layer_prepostprocess_dropout=config.get("dropout", 0.1),
        attention_dropout=config.get("attention_dropout", 0.1),
        relu_dropout=config.get("activation_dropout", 0.0),
    )


def _nllb_table(spm: bytes, path: Path) -> dict[str, int]:
    """Returns NLLB's table: SentencePiece's pieces after four others, of which it has three."""
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=spm or b"\0")
    except RuntimeError as error:
        raise T2TError(f"{path}: corrupt, or not a SentencePiece model; {AGAIN}") from error
    pieces = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    return {piece: row for row, piece in enumerate([*SPECIAL_PIECES, *pieces])}


def _nllb_added(folder: Path, settings: Mapping[str, Any], first: int) -> dict[str, int]:
    """Returns the rows of languages and of what follows them."""
    if (folder / FAST).exists():
        tokens = checked_json.read(folder / FAST, AGAIN).get("added_tokens", [])
        return {token["content"]: token["id"] for token in tokens if token["id"] >= first}
    special = checked_json.read(folder / SPECIAL, AGAIN) if (folder / SPECIAL).exists() else {}
    names = special.get("additional_special_tokens") or settings.get("additional_special_tokens")
    if not names:
        raise T2TError(f"{folder}: no list of languages, neither in {FAST} nor in {SPECIAL}; {AGAIN}")
    return {str(name): first + number for number, name in enumerate([*names, "<mask>"])}


def _check(config: Mapping[str, Any], path: Path) -> None:
    kind = config.get("model_type"), config.get("architectures", [ARCHITECTURE])
    if kind != (M2M100_TYPE, [ARCHITECTURE]):
        raise T2TError(f"{path}: a model of the kind {kind[0]}, {kind[1]}, not {ARCHITECTURE}: not supported")
    sizes = ["encoder_layers", "decoder_layers", "d_model", "encoder_ffn_dim", "decoder_ffn_dim"]
    sizes += ["encoder_attention_heads", "vocab_size", "pad_token_id", "eos_token_id"]
    needed = {
        "activation_function": ("relu",),
        "decoder_attention_heads": (config.get("encoder_attention_heads"),),
        "decoder_start_token_id": (config.get("eos_token_id"),),
        "scale_embedding": (True,),
        "tie_word_embeddings": (True,),
    }
    check_config(config, path, sizes, needed)
