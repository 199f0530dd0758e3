"""What programs write to their logs: each event is declared in the module that logs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

Level = Literal["debug", "info", "warning", "error"]


class LogEvent(str):
    """The name of a log event, `noun.verb`, with what operators have to know of it.

    Attributes:
        level: At which it is logged.
        meaning: A sentence for the reference.
    """

    __slots__ = ("level", "meaning")
    level: Level
    meaning: str

    @classmethod
    def _of(cls, level: Level, name: str, meaning: str) -> Self:
        event = cls(name)
        event.level, event.meaning = level, meaning
        return event

    @classmethod
    def debug(cls, name: str, meaning: str) -> Self:
        """Declare an event for those who search a fault."""
        return cls._of("debug", name, meaning)

    @classmethod
    def info(cls, name: str, meaning: str) -> Self:
        """Declare an event of a normal day."""
        return cls._of("info", name, meaning)

    @classmethod
    def warning(cls, name: str, meaning: str) -> Self:
        """Declare an event that binwright recovers from by itself."""
        return cls._of("warning", name, meaning)

    @classmethod
    def error(cls, name: str, meaning: str) -> Self:
        """Declare an event that an operator should look at."""
        return cls._of("error", name, meaning)


@dataclass(frozen=True, slots=True)
class Log:
    """What a decision has logged."""

    event: LogEvent
    facts: Mapping[str, object] = field(default_factory=dict)
