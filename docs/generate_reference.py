"""MkDocs hook: pages that are generated from the code and from files elsewhere in the checkout.

`mkdocs build` calls the functions named after its events (see `hooks` in mkdocs.yml). Commands, flags,
hparams sets and modules are read from the code at each build, so that their pages cannot go stale.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from t2t_revival.cli.support.flags import Flags

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "build" / "docs" / "t2t_revival"
API = "reference/api"
TOP_FILES = {  # page: the file that it is made from
    "from_tensor2tensor.md": "t2t_revival/from_tensor2tensor.md",
    "project/design.md": "BUILD_NOTES.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changelog.md": "CHANGELOG.md",
    "guides/from_marian.md": "t2t_revival/from_marian.md",
    "guides/my_problem.md": "examples/my_problem/README.md",
}
NOT_IN_API = {"cli", "reproduction", "sample_corpus", "t2t_names", "utils"}  # internal, or commands
WEIGHTS = {
    "reference/api/": 0.01,
    "project/": 0.1,
    "reference/": 0.2,
    "measurements/": 0.2,
}  # in the search; guides: 1
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@event_priority(100)  # before mkdocstrings looks for the folder
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Builds the package where mkdocstrings looks for it, and lists its pages in the navigation."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    build = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(PACKAGE.parent)]
    subprocess.run(build, cwd=ROOT, check=True)
    (reference,) = [entry["Reference"] for entry in config["nav"] if "Reference" in entry]
    (python,) = [entry["Python"] for entry in reference if "Python" in entry]
    python[:] = [{name: f"{API}/{name}.md"} for name in packages()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    pages = {
        "reference/commands.md": commands_page(),
        "reference/hparams.md": hparams_page(),
        "reference/decoding.md": decoding_page(),
    }
    pages |= {f"{API}/{name}.md": api_page(name) for name in packages()}
    pages |= {page: (ROOT / file).read_text(encoding="utf-8") for page, file in TOP_FILES.items()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Gives the page its words and weight in the search; turns links between files into links of pages."""
    name = page.file.src_uri
    page.meta["tags"] = config.extra["search_words"].get(name, [])
    page.meta["search"] = {"boost": next((WEIGHTS[top] for top in WEIGHTS if name.startswith(top)), 1)}
    return relink(markdown, name)


def relink(markdown: str, page: str) -> str:
    """Returns `markdown` with its links to files of the checkout as links between pages.

    A link to a file that has no page stays, and `--strict` reports it.

    Args:
        markdown: the text of a page.
        page: its path in docs/.
    """
    source = TOP_FILES.get(page, f"docs/{page}")
    page_of = {file: made for made, file in TOP_FILES.items()}

    def target(match: re.Match) -> str:
        path, anchor = match[1], match[2] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        made = page_of.get(file) or file.removeprefix("docs/")
        return posixpath.relpath(made, posixpath.dirname(page) or ".") + anchor

    parts, end = [], 0
    for code in [*CODE.finditer(markdown), None]:
        text = markdown[end : code.start() if code else None]
        parts += [LINK.sub(target, text), code[0] if code else ""]
        end = code.end() if code else end
    return "".join(parts)


def packages() -> list[str]:
    """Names of the pages of the API: packages and modules at the top of t2t_revival."""
    names = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    return sorted(name for name in names - NOT_IN_API if not name.startswith("_"))


def api_page(name: str) -> str:
    """The page of a package with all its public modules, which mkdocstrings fills in."""
    top = PACKAGE / name
    files = sorted(top.rglob("*.py")) if top.is_dir() else [top.with_suffix(".py")]
    blocks = []
    for file in files:
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        if parts[-1] == "__init__":  # its names are shown where they are defined
            options = f"heading_level: {1 if len(parts) == 3 else 2}, members: false"
            blocks.append(f"::: {'.'.join(parts[:-1])}\n    options: {{{options}}}")
        else:
            level = 2 if top.is_dir() else 1
            blocks.append(f"::: {'.'.join(parts)}\n    options: {{heading_level: {level}}}")
    return "\n\n".join(blocks) + "\n"


def commands_page() -> str:
    """The page of all commands and their flags, from the flags' definitions."""
    sections = [
        "# Commands",
        "`--help` prints a command's flags. Every command also has `--debug`, which shows the traceback of "
        "an error.",
    ]
    for name in command_names():
        module = importlib.import_module(f"t2t_revival.cli.{name}")
        usage, _, text = module.main.usage.partition("\n\n")
        sections += [f"## t2t-{name.replace('_', '-')}", f"```text\n{usage}\n```"]
        sections += [escape(text), flag_list(module.main.flags)]
    return "\n\n".join(sections) + "\n"


def command_names() -> list[str]:
    """Modules of the commands, from setup.py."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    return re.findall(r'^    "(\w+)",$', text.split("setup(")[0], re.MULTILINE)


def flag_list(kind: type[Flags]) -> str:
    """The flags of a command as a definition list."""
    from t2t_revival.cli.support.command import Parser

    lines = []
    for flag in Parser(kind).definitions:
        name = flag.name
        if name in ("help", "debug"):
            continue
        default = str(flag.default).lower() if flag.boolean else flag.default
        shown = "" if flag.default in (None, "", []) else f" Default: `{default}`."
        choices = getattr(flag.parser, "enum_values", None)
        one_of = f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
        help_text = re.sub(r"^<[^>]*>: ", "", flag.help) if choices else flag.help
        head = f"--[no]{name}" if flag.boolean else f"--{name}"
        lines.append(f"`{head}`\n:   {escape(help_text)}{one_of}{shown}")
    return "\n\n".join(lines)


def hparams_page() -> str:
    """The page of all hyperparameters and sets, from `HParams` and the registry."""
    from t2t_revival import registry
    from t2t_revival.hparams.hparams import meanings

    base = dataclasses.asdict(registry.hparams("base"))
    sections = [
        "# Hparams sets",
        "`--hparams_set=NAME --registry_help` prints a set's fields. The values here are those of `base`, "
        "the paper's base model; the [sets](#sets) are at the end.",
    ]
    for title, fields in meanings().items():
        sections.append(f"## {title}")
        sections += [f"`{name}` = `{base[name]}`\n:   {escape(text)}" for name, text in fields.items()]
    rows = []
    for name, summary in registry.list_hparams().items():
        made = dataclasses.asdict(registry.hparams(name))
        changed = ", ".join(f"`{key}={made[key]}`" for key in base if made[key] != base[key])
        rows.append(f"| `{name}` | {escape(summary)} | {changed} |")
    table = "\n".join(["| set | | differs from `base` in |", "|---|---|---|", *rows])
    return "\n\n".join([*sections, "## Sets", table]) + "\n"


def decoding_page() -> str:
    """The page of what goes with what in decoding, from the tables of places."""
    from t2t_revival.addons.formats import TABLES
    from t2t_revival.decoding import combinations
    from t2t_revival.decoding.options import DecodeHParams

    shown = {field.name: f"`{field.name}`" for field in dataclasses.fields(DecodeHParams)}
    shown |= combinations.OF_CALLS
    sections = [
        "# What goes with what in decoding",
        "Settings are those of `--decode_hparams`. What a table does not say to be supported is refused, by "
        "a message that tells what to do instead.",
    ]
    for title, places in TABLES.items():
        rows: dict[tuple[str, ...], list[str]] = {}
        for feature, name in shown.items():
            cells = tuple("yes" if feature in place.features else "no" for place in places)
            rows.setdefault(cells, []).append(name)
        lines = [" | ".join(["", "", *(place.name for place in places), ""]).strip()]
        lines.append("|---" * (len(places) + 1) + "|")
        lines += [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in rows.items()]
        sections += [f"## {title}", "\n".join(lines)]
    sections.append("## What cannot be combined")
    all_places = [place for places in TABLES.values() for place in places]
    pairs = [("", combinations.EXCLUDE), *((f", in {place.name}", place.exclude) for place in all_places)]
    for where, excluded in pairs:
        sections += [
            f"{shown[feature]}{where}\n:   with " + ", ".join(shown[name] for name in shown if name in others)
            for feature, others in excluded.items()
        ]
    needs = (f"{shown[name]} without `{needed}`" for name, needed in sorted(combinations.NEEDS.items()))
    return "\n\n".join([*sections, f"Of no effect are {', '.join(needs)}."]) + "\n"


def escape(text: str) -> str:
    """Plain text as Markdown."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return re.sub(r"([\\`*_\[\]])", r"\\\1", text)


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
