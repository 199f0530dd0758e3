"""What requests to somebody's web server have in common."""

import base64
from typing import Any
from urllib.request import BaseHandler, HTTPRedirectHandler, OpenerDirector, build_opener


class _NoRedirects(HTTPRedirectHandler):
    """Lets no server send a secret somewhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener(*handlers: BaseHandler) -> OpenerDirector:
    """Return what opens requests, and follows no redirect."""
    return build_opener(_NoRedirects, *handlers)


def basic_login(user: str, password: str) -> str:
    """Return the header `Authorization` of a user."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
