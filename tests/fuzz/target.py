"""What hostile inputs are given to."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder.

    Attributes:
        decode: Reads bytes.
        errors: What it may raise, besides returning.
        corpus: Valid inputs.
        inputs: How many it is given at once.
    """

    decode: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    corpus: tuple[bytes, ...]
    inputs: int = 100
