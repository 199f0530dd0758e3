"""Compares and extends paths and addresses of object stores."""

import re
from functools import lru_cache
from posixpath import normpath
from urllib.parse import unquote, urlsplit

_FORM = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<store>[A-Za-z0-9.:@_-]*))?"
    r"(?P<path>(?:/[A-Za-z0-9._=+,@~-]+)*)/?"
)
_ALIASES = {"s3a": "s3", "file": ""}


@lru_cache(maxsize=1_000)
def storage_parts(path: str) -> tuple[str, ...] | None:
    """Return scheme, store and directories; None for what programs may read in different ways.

    That is a relative path, an address without a store, `.` and `..`, empty names, and characters
    that are escaped, or that stand for others. A store's name is compared as it is written.
    """
    match = _FORM.fullmatch(path)
    if match is None or not path:
        return None
    scheme, store = (match["scheme"] or "").lower(), match["store"] or ""
    scheme = _ALIASES.get(scheme, scheme)
    names = match["path"].split("/")[1:]
    if bool(scheme) != bool(store) or {".", ".."} & set(names):
        return None
    return scheme, store, *names


def place(path: str) -> tuple[str, ...]:
    """Return a path's or address's parts, in one form for all its spellings."""
    parts = urlsplit(path)
    scheme = _ALIASES.get(parts.scheme, parts.scheme)
    names = normpath(f"/{unquote(parts.path)}").split("/")
    # Before the @ is a container of Azure's; of other stores a key, which is no part of the place.
    store = parts.netloc if scheme.startswith(("abfs", "wasb")) else parts.hostname
    return scheme, store or "", *filter(None, names)


def below(path: str, name: str) -> str:
    """Return the directory of this name in a path or address; options behind a `?` stay there."""
    place, mark, options = path.partition("?") if "://" in path else (path, "", "")
    return f"{place.rstrip('/')}/{name}{mark}{options}"


def is_at_or_below(path: str, prefix: str) -> bool:
    """Whether a path is `prefix`, or lies below it; by whole names, and false where unclear."""
    inner, outer = storage_parts(path), storage_parts(prefix)
    return inner is not None and outer is not None and inner[: len(outer)] == outer
