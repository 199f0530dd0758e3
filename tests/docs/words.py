"""The words in backticks on a page, and what the code knows by that name."""

import re
from pathlib import Path

from pydantic import BaseModel
from tools.reference import log_events

from binwright.inspect.settings_file import PROGRAMS
from binwright.protocol.section import Section

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

EVENT = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_]*")
_CODE = re.compile(r"`([^`\n]+)`")
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_OTHERS = {
    "binwright.cluster",  # a property of a table
    "binwright.commands",
    "binwright.group",
    "binwright.landing",  # topics
    "binwright.metadata",
    "binwright.metrics",
}


def quoted(page: Path) -> set[str]:
    """Return what stands in backticks, blocks of code apart."""
    return set(_CODE.findall(_BLOCK.sub("", page.read_text())))


def settings() -> set[str]:
    """Return the settings by their whole names, and the sections."""
    names = set[str]()
    every = {n: f for program in PROGRAMS for n, f in program.model_fields.items()}
    for name, field in every.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            names |= {f"{name}.{each}" for each in fields(kind)}
        names.add(name)
    return names


def fields(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


def unknown(page: Path) -> set[str]:
    """Return the words `this.that` on a page that are neither a setting nor a log event."""
    dotted = {word for word in quoted(page) if EVENT.fullmatch(word)}
    files = {word for word in dotted if (ROOT / word).exists() or word.endswith((".md", ".py"))}
    events = {str(event) for event, _ in log_events.events()}
    return dotted - files - settings() - events - _OTHERS
