"""What all sections share: a table of the settings file, and the types of its values."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from binwright.protocol.patterns import compile_pattern, compile_patterns

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Positive
Bytes = Annotated[int, Field(gt=0)]
KeepDays = Annotated[float, Field(ge=0, le=36_500)]


def _compiles(pattern: str) -> str:
    return compile_pattern(pattern).text


def _together(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(pattern.text for pattern in compile_patterns(patterns))


TopicPattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_compiles)]
"""A regular expression for the whole names of topics."""
TopicPatterns = Annotated[tuple[TopicPattern, ...], AfterValidator(_together)]


def check_distinct(names: Iterable[str], prefix: str = "") -> None:
    """Raise `ValueError` for names that stand twice."""
    if twice := sorted(name for name, number in Counter(names).items() if number > 1):
        raise ValueError(f"{prefix}named twice: {', '.join(twice)}")


class Section(BaseModel):
    """A table of the settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
