"""The page of all log events, from the modules that declare and log them."""

from importlib import import_module
from pathlib import Path

from tools.reference.markdown import code, entries

import binwright
from binwright.protocol.log_events import LogEvent

HEAD = """\
# Log events

Every event that binwright logs to standard error, `noun.verb`.
`log_format = "json"` writes an object for each, with `event`, `level`, `timestamp` and the event's
own fields; `log_level` leaves out lower levels. A field has the same name in all events: `reason`
is an error's text, `then` what binwright does about it, `slot` a consumer, and `group`, `table`,
`topic`, `partition`, `plan` and `offset` are what they are elsewhere. Headings name the services
that log what follows (`all`: any; `command line` includes the embedded servers), and the level.
Other libraries' warnings have other forms. [operations.md](../operations.md) has what to do about
those that matter.
"""

PROGRAMS = {
    **{name: name for name in ("balancer", "consumer", "controller", "monitor", "scaler")},
    "fleets": "controller, scaler",
    "kafka": "all",
    "kubernetes": "controller, scaler",
    "lake": "command line, consumer",
    "packing": "controller",
    "runtime": "all",
}
"""Room of `binwright` -> whose log has what is logged there; the others are the command line's."""
LEVELS = ("error", "warning", "info", "debug")


def events() -> list[tuple[LogEvent, str]]:
    """Return all events by name, each with those whose log has it: whose modules know it."""
    known: dict[int, tuple[LogEvent, set[str]]] = {}
    for root in map(Path, binwright.__path__):
        for path in root.rglob("*.py"):
            if "LogEvent" in (text := path.read_text()) or "runtime.logs import log" in text:
                room, *rest = path.relative_to(root).with_suffix("").parts
                for value in vars(import_module(".".join(("binwright", room, *rest)))).values():
                    if isinstance(value, LogEvent):
                        programs = PROGRAMS.get(room, "command line").split(", ")
                        known.setdefault(id(value), (value, set()))[1].update(programs)
    return sorted((event, ", ".join(sorted(logging))) for event, logging in known.values())


def page() -> str:
    """Return the reference, in Markdown."""
    found = events()
    parts = [HEAD]
    for source in sorted({source for _, source in found}):
        for level in LEVELS:
            logged = [e for e, its in found if (its, e.level) == (source, level)]
            if logged:
                rows = ((code(event), (), event.meaning) for event in logged)
                parts.append(f"## {source}: {level}\n\n{entries(rows)}")
    return "\n".join(parts)
