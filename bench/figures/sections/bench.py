"""How the figures of a bench are shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.figures.markdown import value

Facts = Any  # JSON, as the bench prints it
Sections = Mapping[str, str]  # name -> Markdown


@dataclass(frozen=True, slots=True)
class Bench:
    """How the figures of one bench are shown.

    Attributes:
        command: What measures them.
        titles: Each section that the bench may fill, and its heading.
        sections: Makes the sections of what was measured; some may be left out of a run.
    """

    command: str
    titles: Mapping[str, str]
    sections: Callable[[Facts], Sections]


def pairs(facts: Mapping[str, Any]) -> str:
    """Return a list of figures."""
    return "\n".join(f"- {name}: {value(number)}" for name, number in facts.items())
