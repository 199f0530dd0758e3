"""Look up a packing by its name: one of the core's, or `exact`."""

import re
from importlib.util import find_spec

from binwright.packing.catalogue import Packing, algorithm
from binwright.packing.sticky.policy import PRICE
from binwright.protocol.errors import PackingError

_EXACT = re.compile(r"exact(?::([0-9]+(?:\.[0-9]+)?))?")


def packing(name: str, seed: int = 0) -> Packing:
    """Return the packing of that name. See `core.packing.catalogue.algorithm`.

    Args:
        name: `exact` and `exact:PRICE` besides the core's names.
        seed: Of the online algorithms.

    Raises:
        PackingError: There is no such packing (lists the names that exist), or scipy is missing
            for `exact` (says what to install or to use instead).
    """
    if (found := _EXACT.fullmatch(name)) is None:
        try:
            return algorithm(name, seed)
        except PackingError as exc:
            exact = ", exact" if "there are:" in str(exc) else ""
            raise PackingError(f"{exc}{exact}") from None
    if find_spec("scipy") is None:
        raise PackingError(
            f"packing {name!r} needs scipy, which is not installed here: "
            "pip install 'binwright[exact]', or use sticky"
        )
    from binwright.packing.exact import Exact  # noqa: PLC0415 - only where scipy is

    return Exact(float(found[1]) if found[1] else PRICE)
