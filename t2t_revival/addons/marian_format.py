"""Trained models as Marian runs them: a folder for `marian-decoder -c decoder.yml`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.addons.imports.kinds import MARIAN_CONFIG
from t2t_revival.addons.imports.layers import EMBEDDINGS, NEVER, SSRU, arrays_of, channels_there, layers_there
from t2t_revival.addons.imports.marian import MAX_LENGTH_FACTOR, POST_NORM, names_there
from t2t_revival.data.vocabulary.marian import MarianVocabulary, check_plain
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.text_encoder import TextEncoder
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.serving.export import Export

MODEL, SETTINGS = "model.npz", "decoder.yml"


@dataclass(frozen=True)
class Side:
    """A vocabulary of sources or targets.

    Attributes:
        model: its SentencePiece model.
        rows: the id here of each of its pieces; that of the unknown token for those that have none.
        size: rows of embeddings, those that no piece has included.
    """

    model: bytes
    rows: np.ndarray
    size: int

    @classmethod
    def of(cls, vocabulary: TextEncoder, multiple: int) -> Side:
        """Returns a side, of a size that is a multiple; raises T2TError if it is T2T's or M2M100's."""
        check_plain(vocabulary, "Marian")
        if isinstance(vocabulary, MarianVocabulary):
            ids = {piece: token for token, piece in enumerate(vocabulary.pieces)}
            rows = np.array([ids.get(piece, vocabulary.unknown) for piece in vocabulary.scores])
            model = vocabulary.model
        elif isinstance(vocabulary, Vocabulary):
            model, rows = vocabulary.content, np.arange(vocabulary.size)
        else:
            raise T2TError(f"Marian's vocabularies are SentencePiece's; {vocabulary.path} is of another kind")
        return cls(model, rows, -(-len(rows) // multiple) * multiple)

    def take(self, array: np.ndarray, rest: float = 0.0) -> np.ndarray:
        """Returns the rows of the pieces, [size, ...]; other rows have the value `rest`."""
        taken = np.full((self.size, *array.shape[1:]), rest, np.float32)
        taken[: len(self.rows)] = array[self.rows]
        return taken


@dataclass(frozen=True)
class MarianParts:
    """A model in Marian's terms.

    Attributes:
        weights: arrays by Marian's names, in its layout.
        settings: those of `special:model.yml`.
        source: the vocabulary of sources.
        target: that of targets.
    """

    weights: dict[str, np.ndarray]
    settings: dict[str, Any]
    source: Side
    target: Side

    @property
    def shared(self) -> bool:
        """True if both sides have the same vocabulary and embeddings."""
        return "Wemb" in self.weights

    @classmethod
    def of(cls, translator: Translator, multiple: int = 1) -> MarianParts:
        """Returns the parts of a model.

        Args:
            translator: model and vocabularies; the model's precision is float32.
            multiple: of which numbers of embeddings are.

        Raises:
            T2TError: the vocabulary is T2T's.
        """
        hparams, arrays = translator.model.hparams, arrays_of(translator.model)
        source, target = (Side.of(vocabulary, multiple) for vocabulary in translator.vocabularies)
        embeddings = arrays[EMBEDDINGS]
        own = "source_embedding/embeddings"
        shared = source.model == target.model and own not in arrays
        tables = {"Wemb" if shared else "decoder_Wemb": target.take(embeddings)}
        if not shared:
            tables["encoder_Wemb"] = source.take(arrays.get(own, embeddings))
        is_tied = hparams.shared_embedding_and_softmax_weights
        softmax = "target_embedding" if is_tied else "softmax_embedding"
        if not is_tied:
            tables["decoder_ff_logit_out_Wt"] = target.take(arrays[f"{softmax}/embeddings"])
        bias = arrays.get(f"{softmax}/softmax_bias", np.zeros(len(embeddings), np.float32))
        bias = target.take(bias, NEVER)
        bias[np.flatnonzero(target.rows == translator.vocabularies.targets.unknown)[1:]] = NEVER
        tables["decoder_ff_logit_out_b"] = bias[None]
        there = layers_there(arrays, hparams, channels_there(hparams, sines_first=False))
        settings = {
            "type": "transformer",
            "enc-depth": hparams.encoder_layers,
            "dec-depth": hparams.decoder_layers,
            "dim-emb": hparams.hidden_size,
            "dim-vocabs": [source.size, target.size],
            "tied-embeddings": is_tied and not shared,
            "tied-embeddings-all": shared,
            "transformer-dim-ffn": hparams.filter_size,
            "transformer-decoder-dim-ffn": hparams.decoder_filter_size,
            "transformer-heads": hparams.num_heads,
            "transformer-ffn-activation": hparams.ffn_activation,
            "transformer-decoder-autoreg": "rnn"
            if hparams.decoder_self_attention == SSRU
            else "self-attention",
            "dec-cell": "ssru",
            **POST_NORM,
        }
        return cls(names_there(there, hparams) | tables, settings, source, target)


def export_marian(what: Export) -> tuple[Path, str]:
    """Writes a version; also returns the command that decodes with it. See `write_marian`."""
    version = what.write_version(lambda folder: write_marian(what.translator, folder))
    return version, f"next: marian-decoder -c {shlex.quote(str(version / SETTINGS))} < FILE"


def write_marian(translator: Translator, folder: Path) -> None:
    """Writes model.npz, the vocabularies and decoder.yml.

    Args:
        translator: model, vocabularies and options; the model's precision is float32.
        folder: must not exist.

    Raises:
        T2TError: the vocabulary is T2T's.
    """
    parts, options = MarianParts.of(translator), translator.options
    names = ["vocab.spm"] * 2 if parts.shared else ["source.spm", "target.spm"]
    arrays = {name: np.ascontiguousarray(array) for name, array in parts.weights.items()}
    arrays[MARIAN_CONFIG] = np.frombuffer(yaml_of(parts.settings) + b"\0", np.int8)
    search = {
        "relative-paths": True,
        "models": [MODEL],
        "vocabs": names,
        "max-length-factor": MAX_LENGTH_FACTOR,
        **search_of(options),
    }
    folder.mkdir()
    np.savez(folder / MODEL, **arrays)  # type: ignore[arg-type]  # of NumPy's stubs
    for name, side in zip(names, (parts.source, parts.target), strict=True):
        (folder / name).write_bytes(side.model)
    (folder / SETTINGS).write_bytes(yaml_of(search))


def search_of(options: DecodeHParams) -> dict[str, Any]:
    """Returns Marian's settings of the search; its penalty of lengths stands for GNMT's, which it has not."""
    limit = {"max-length-factor": options.max_length_factor} if options.max_length_factor else {}
    return {"beam-size": options.beam_size, "normalize": options.normalize or options.alpha, **limit}


def yaml_of(settings: Mapping[str, Any]) -> bytes:
    """Returns settings as Marian reads them."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items()).encode()
