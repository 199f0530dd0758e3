"""Every packing by name: the core's, and the exact one, which needs more than the core may."""

import re
from importlib.util import find_spec

from binwright.core.errors import PackingError
from binwright.core.packing.catalogue import Packing, algorithm
from binwright.core.packing.sticky.policy import PRICE

_EXACT = re.compile(r"exact(?::([0-9]+(?:\.[0-9]+)?))?")


def packing(name: str, seed: int = 0) -> Packing:
    """Return the packing of that name. See `core.packing.catalogue.algorithm`.

    Args:
        name: Also exact, with a price as in exact:0.4 if it is not to be the default.
        seed: Of the online algorithms.

    Raises:
        PackingError: There is none; lists those that there are. Or scipy is missing for exact.
    """
    if (found := _EXACT.fullmatch(name)) is None:
        try:
            return algorithm(name, seed)
        except PackingError as exc:
            exact = ", exact" if "there are:" in str(exc) else ""
            raise PackingError(f"{exc}{exact}") from None
    if find_spec("scipy") is None:
        raise PackingError(f"packing {name!r} needs scipy: pip install 'binwright[lab]'")
    from binwright.lab.exact import Exact  # noqa: PLC0415 - only where scipy is

    return Exact(float(found[1]) if found[1] else PRICE)
