"""Models of the Hugging Face Hub: "hf:Helsinki-NLP/opus-mt-en-de", downloaded once."""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from pathlib import Path

from t2t_revival.addons.imports import kinds, m2m100, transformers
from t2t_revival.addons.imports.kinds import CONFIG
from t2t_revival.data.library_sources import silent_hosts
from t2t_revival.decoding.addons import HUB
from t2t_revival.errors import T2TError
from t2t_revival.utils.extras import require
from t2t_revival.utils.files import cache_folder, writing

NAME = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
FORMAT = 1  # of imported models: another number imports them anew
FILES = {  # besides the weights
    kinds.TRANSFORMERS: [CONFIG, transformers.TOKENIZER, transformers.TABLE, *transformers.SPMS],
    kinds.M2M100: [CONFIG, transformers.TOKENIZER, m2m100.SPM],
}
OPTIONAL = [transformers.GENERATION, transformers.TARGET_TABLE, transformers.ADDED]
OPTIONAL += [m2m100.FAST, m2m100.SPECIAL]


def download(name: str) -> Path:
    """Returns the folder of a model in the hub's cache; what is there already is not asked for again.

    Args:
        name: hf:OWNER/NAME or hf:OWNER/NAME@REVISION.

    Raises:
        T2TError: huggingface_hub is not installed, the hub does not answer, or it has no such model.
    """
    require("huggingface_hub", name)
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    match = NAME.fullmatch(name)
    if not match:
        raise T2TError(f"{name}: not a name of the hub, such as hf:Helsinki-NLP/opus-mt-en-de")
    repository, revision = match.groups()

    def snapshot(local: bool) -> Path | None:
        for weights in transformers.WEIGHTS:
            files = [*sum(FILES.values(), OPTIONAL), weights.replace(".", "*.") + "*"]  # of shards too
            folder = snapshot_download(
                repository, revision=revision, allow_patterns=files, local_files_only=local
            )
            if is_complete(Path(folder)):
                return Path(folder)
        return None

    with suppress(LocalEntryNotFoundError, HFValidationError):
        if folder := snapshot(local=True):
            return folder
    if constants.HF_HUB_OFFLINE or silent_hosts([constants.ENDPOINT]):
        raise T2TError(
            f"{name}: not in the cache of the hub, {constants.HF_HUB_CACHE}, and the hub does not answer, or "
            "HF_HUB_OFFLINE forbids to ask it: download it elsewhere, and give its folder"
        )
    try:
        if folder := snapshot(local=False):
            return folder
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise T2TError(f"{name}: {str(error).splitlines()[0]}") from error
    lacking = " or ".join(f"for {kind.name}, {', '.join(files)}" for kind, files in FILES.items())
    raise T2TError(f"{name}: no model that can be imported: it lacks the weights or, {lacking}")


def is_complete(folder: Path) -> bool:
    """Returns whether a folder has all files that are read."""
    try:
        weights, kind = transformers.weight_files(folder), kinds.kind_of(folder)
    except T2TError:
        return False
    files = FILES.get(kind, []) if kind else []
    return bool(files) and all(path.exists() for path in (*weights, *(folder / name for name in files)))


def imported(name: str) -> Path:
    """Returns an output_dir with a model of the hub, which is imported once.

    It is in `cache_folder`.

    Raises:
        T2TError: as `download` and `transformers.import_folder`.
    """
    folder = download(name)
    if kinds.kind_of(folder) is kinds.M2M100:
        raise T2TError(
            f"{name}: a model of many languages: import it first, with --problem, by t2t-import-checkpoint"
        )
    cache = cache_folder()
    repository = name.removeprefix(HUB).partition("@")[0]
    made = cache / repository.replace("/", "--") / f"{folder.name}-{FORMAT}"  # the revision
    if made.exists():
        return made
    with writing(f"to {cache}", "give XDG_CACHE_HOME another folder"):
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
            transformers.import_folder(folder, Path(scratch, "model"))
            if not made.exists():  # another process may have made it meanwhile
                Path(scratch, "model").rename(made)
    return made
