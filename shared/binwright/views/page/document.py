"""The files of the page, as they are served: they load nothing from elsewhere."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from binwright.runtime.http import Paths, Response

WEB = Path(__file__).with_name("web")
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
# The browser itself refuses what a hostile name of a topic might try.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # a newer version's files fit together
}


def paths() -> Paths:
    """Return where each file is found; the document itself is at `/`."""
    found: dict[str, Callable[[], Response]] = {}
    for file in sorted(WEB.iterdir()):
        response = Response(file.read_bytes(), TYPES[file.suffix], headers=HEADERS)
        found[f"/{file.name}"] = partial(_give, response)
    return {"/": found.pop("/index.html"), **found}


def _give(response: Response) -> Response:
    return response
