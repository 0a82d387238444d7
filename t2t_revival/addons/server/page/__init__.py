"""The page of a server: one file of HTML, CSS and JavaScript each, which load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from fastapi import FastAPI, Response

from t2t_revival.addons.attention.page import hashes

FOLDER = Path(__file__).parent
FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}


def add_page(app: FastAPI) -> None:
    """Adds the routes of the page's files."""
    for path, (name, media_type) in FILES.items():
        app.add_api_route(path, _sender(name, media_type), include_in_schema=False)


@cache
def content_policy() -> str:
    """Returns the content policy of all answers; it names the style and script of t2t-attention's page."""
    style, script = hashes()
    return (
        f"default-src 'self'; img-src 'self' data:; style-src 'self' 'sha256-{style}'; "
        f"script-src 'self' 'sha256-{script}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def _sender(name: str, media_type: str) -> Callable[[], Response]:
    def send() -> Response:
        return Response(FOLDER.joinpath(name).read_bytes(), media_type=media_type)

    return send
