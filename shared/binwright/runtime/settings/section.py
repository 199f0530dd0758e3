"""What all sections share: a table of the settings file, and the types of its values."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Positive
Bytes = Annotated[int, Field(gt=0)]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as exc:
        raise ValueError(f"not a regular expression: {pattern!r}: {exc}") from exc
    return pattern


TopicPattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_compiles)]
"""A regular expression for the whole names of topics."""


def check_distinct(names: Sequence[str], prefix: str = "") -> None:
    """Raise `ValueError` for names that stand twice."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{prefix}named twice: {', '.join(twice)}")


class Section(BaseModel):
    """A table of the settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
