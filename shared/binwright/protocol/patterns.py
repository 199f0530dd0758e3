"""Patterns for names of topics: RE2's regular expressions, matched in linear time.

Whoever may create a group object, or write to the needs topic, gives patterns to a controller and a
monitor that others use as well. With backtracking, one pattern could occupy them for ever. A
program of RE2 takes a name's characters one by one; its size bounds the time that each takes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

STEPS, ALL_STEPS = 600, 5_000
"""Of the program of one pattern, and of those of a group together: 500 letters take about 500."""
MEMORY_BYTES = 1 << 18  # of a pattern's automaton; RE2 goes on without one, but linearly


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression for whole names of topics; equal texts are equal."""

    text: str
    _program: Any = field(compare=False, repr=False)

    @property
    def steps(self) -> int:
        """Return the size of its program."""
        size: int = self._program.programsize
        return size

    def matches(self, topic: str) -> bool:
        """Whether the whole name matches."""
        return topic.isascii() and self._program.fullmatch(topic.encode()) is not None

    @property
    def group_names(self) -> frozenset[str]:
        """Return the names of its groups, as in `(?P<region>[a-z]+)`."""
        return frozenset(_capturing(self.text).groupindex)

    def groups(self, topic: str) -> Mapping[str, str] | None:
        """Return what its named groups match, empty where one has no part; None: no match."""
        if not self.matches(topic):
            return None
        program = _capturing(self.text)
        match = program.fullmatch(topic)
        return {name: match.group(at) or "" for name, at in program.groupindex.items()}


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # a byte is a character: names are ASCII
    options.max_mem = MEMORY_BYTES
    options.never_capture = True
    options.log_errors = False
    return options


@lru_cache(maxsize=1_024)
def _capturing(text: str) -> Any:
    """Return the program that finds groups: a slower one, so only names of tables need it."""
    options = _options()
    options.encoding, options.never_capture = re2.Options.Encoding.UTF8, False
    return re2.compile(text, options)


@lru_cache(maxsize=4_096)
def compile_pattern(text: str) -> Pattern:
    """Return the pattern; raise `ValueError` for one that RE2 does not take, or a large one."""
    try:
        program = re2.compile(text.encode("ascii"), _options())
    except UnicodeEncodeError:
        raise ValueError(f"a topic's name has ASCII characters only: {text!r}") from None
    except re2.error as exc:
        reason = exc.args[0].decode(errors="replace")
        raise ValueError(
            f"not a regular expression: {text!r}: {reason} (RE2's have no look-around and no "
            "references; exclude_topic_patterns leaves topics out)"
        ) from exc
    pattern = Pattern(text, program)
    if pattern.steps > STEPS:
        raise ValueError(
            f"too large: {text!r} has {pattern.steps} steps, {STEPS} at most: repeat less"
        )
    return pattern


def compile_patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    """Return the patterns of one group; raise `ValueError` also if they are large together."""
    patterns = tuple(map(compile_pattern, texts))
    if (steps := sum(pattern.steps for pattern in patterns)) > ALL_STEPS:
        raise ValueError(f"too large together: {steps} steps, {ALL_STEPS} at most: use fewer")
    return patterns
