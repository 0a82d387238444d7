"""The documentation: version, commands with their flags, links, and the site itself."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import quote, urlsplit

import pytest
import yaml

import t2t_revival
from t2t_revival.cli.support.command import Parser

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "BUILD_NOTES.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / "t2t_revival" / f"from_{program}.md" for program in ("marian", "tensor2tensor")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
SEARCH_WORDS = [(word, page) for page, words in SITE["extra"]["search_words"].items() for word in words]


def test_one_version() -> None:
    setup = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    changelog = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    (citation,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert setup.stdout.split()[-1] == changelog[0] == citation == t2t_revival.__version__


def commands(text: str) -> list[list[str]]:
    """Words of the t2t-* command lines in a page's shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("t2t-")]


def test_commands_and_flags_exist() -> None:
    wrong = []
    for page in PAGES:
        for name, *words in commands(page.read_text(encoding="utf-8")):
            module = importlib.import_module(f"t2t_revival.cli.{name.removeprefix('t2t-').replace('-', '_')}")
            flags = {word.partition("=")[0].removeprefix("--") for word in words if word.startswith("--")}
            wrong += [
                f"{page.name}: {name} --{flag}" for flag in flags - set(Parser(module.main.flags).table)
            ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_links_lead_to_files() -> None:
    generated = {ROOT / "docs" / "reference" / name for name in ("commands.md", "hparams.md", "decoding.md")}
    wrong = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        files = {target: (page.parent / target).resolve() for target in LINK.findall(text)}
        wrong += [
            f"{page.name}: {target}"
            for target, file in files.items()
            if not file.exists() and file not in generated and file.parent.name != "api"
        ]
    assert not wrong, "\n".join(wrong)


def test_a_search_word_leads_to_one_page_which_has_it() -> None:
    assert len(SEARCH_WORDS) == len(dict(SEARCH_WORDS))
    for word, page in SEARCH_WORDS:
        assert squeezed(word) in squeezed((ROOT / "docs" / page).read_text(encoding="utf-8")), (word, page)


def squeezed(text: str) -> str:
    """`text` in lower case, without spaces, line ends, hyphens and underscores."""
    return re.sub(r"[\s_-]", "", text).lower()


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """docs/generate_reference.py."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("docs_hook", ROOT / "docs" / "generate_reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_command_flag_and_set(hook: ModuleType) -> None:
    commands_page, hparams_page = hook.commands_page(), hook.hparams_page()
    scripts = metadata.distribution("t2t_revival").entry_points.select(group="console_scripts")
    assert re.findall(r"^## (t2t-\S+)", commands_page, re.MULTILINE) == sorted(scripts.names)
    assert "`--[no]xla`" in commands_page
    assert "| `table3_a_h1` |" in hparams_page
    assert "`attention_window` = `0`" in hparams_page
    assert "| `shortlist`, int8 | no | no | yes |" in hook.decoding_page()


@pytest.mark.nightly
@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "translate_ende" in (tmp_path / "reference" / "commands.html").read_text(encoding="utf-8")
    first = first_hits(tmp_path, [word for word, _ in SEARCH_WORDS])
    assert first == {word: page.replace(".md", ".html") for word, page in SEARCH_WORDS}


def first_hits(site: Path, words: list[str]) -> dict[str, str]:
    """The first page that the site's search shows for each of `words`, in a browser."""
    api = pytest.importorskip("playwright.sync_api")
    if BROWSER is None:
        pytest.skip("there is no Chromium here (Debian: chromium)")
    found = {}
    with api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.route("**/*", lambda route: route.fulfill(path=site / urlsplit(route.request.url).path[1:]))
        for word in words:
            page.goto(f"http://site/index.html?q={quote(word)}")
            link = page.locator(".md-search-result__item > a").first
            link.wait_for(state="attached")
            found[word] = urlsplit(link.get_attribute("href")).path[1:]
        browser.close()
    return found


def test_pictures_of_the_structure() -> None:
    """They are what their script draws; the modules in them are there."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "structure_pictures.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, picture in script.pictures().items():
        assert (ROOT / "docs" / "images" / name).read_text(encoding="utf-8") == picture, name
    for box in script.DECODING.values():
        if box.is_code:
            package = ROOT / "t2t_revival"
            assert (package / box.name).exists() or (package / "decoding" / box.name).exists()
    for box in script.FILES.values():
        if box.is_code:
            importlib.import_module(f"t2t_revival.cli.{box.name.removeprefix('t2t-').replace('-', '_')}")
