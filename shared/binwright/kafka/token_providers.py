"""Providers of tokens that packages bring: entry points of the group `binwright.token_providers`.

Only what is installed beside binwright can be named, so settings that others write run no code of
theirs.
"""

from collections.abc import Callable
from importlib.metadata import entry_points

from binwright.protocol.errors import SettingsError

ENTRY_POINTS = "binwright.token_providers"

TokenProvider = Callable[[str], tuple[str, float]]
"""Returns a token for the bootstrap servers, and when it expires, s since 1970. May block: it is
called in a thread. Whatever it raises, a later connection asks again."""


def provider(name: str) -> TokenProvider:
    """Return the provider of that name.

    Raises:
        SettingsError: None of the name is installed, or it cannot be loaded.
    """
    installed = {each.name: each for each in entry_points(group=ENTRY_POINTS)}
    if name not in installed:
        there = ", ".join(sorted(installed)) or "none"
        raise SettingsError(
            f"kafka.sasl_token_provider: no installed package has {name!r}; there are: {there}"
        )
    try:
        loaded: TokenProvider = installed[name].load()
    except (ImportError, AttributeError) as exc:
        raise SettingsError(f"kafka.sasl_token_provider: {name} cannot be loaded: {exc}") from exc
    return loaded
