"""What all sections share: a table of the settings file, and the types of its values."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import urlparse

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


def _is_web(value: str) -> str:
    url = urlparse(value)
    if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
        raise ValueError("must be an address of http or https, without query and fragment")
    if url.username or url.password:
        raise ValueError("must hold no user and no password")
    return value.rstrip("/")


WebAddress = Annotated[str, AfterValidator(_is_web)]
"""Of a server of http or https, without a slash at its end."""
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
