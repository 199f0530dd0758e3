"""The page of all log events, from the source that logs them."""

from importlib import import_module
from pathlib import Path

from tools.reference.log_meanings import MEANINGS
from tools.reference.log_scan import Event, events
from tools.reference.markdown import code, table

from binwright.protocol.errors import UserError

HEAD = """\
# Log events

Every event that binwright logs to standard error, `noun.verb`, with its level and fields.
`log_format = "json"` writes an object for each, with `event`, `level` and `timestamp`; `log_level`
leaves out lower levels. `from` says which service logs it, or that any may (`all`); `command line`
includes the embedded servers. Other libraries' warnings have other forms.
[operations.md](../operations.md) says what to do about those that matter.

`python -m tools.reference log-events` prints this page, in a checkout.
"""

SOURCES = {
    "binwright.inspect": "command line",
    "binwright.balancer": "balancer",
    "binwright.cli": "command line",
    "binwright.consumer": "consumer",
    "binwright.controller": "controller",
    "binwright.fleets": "controller, scaler",
    "binwright.kafka": "all",
    "binwright.kubernetes": "controller, scaler",
    "binwright.lab": "command line",
    "binwright.local": "command line",
    "binwright.monitor": "monitor",
    "binwright.packing": "controller",
    "binwright.streams": "command line",
    "binwright.runtime": "all",
    "binwright.scaler": "scaler",
    "binwright.look": "command line",
}
"""Each package that logs, and whose log has it."""


def page() -> str:
    """Return the reference, in Markdown.

    Raises:
        UserError: A service is not installed: its source is not there.
    """
    rows = (_row(name, event) for name, event in sorted(found().items()))
    return f"{HEAD}\n{table(['event', 'level', 'from', 'fields', 'meaning'], rows)}"


def found() -> dict[str, Event]:
    """Return all events in the source, by name; raise `UserError` as `page` does."""
    return events({_directory(package): source for package, source in SOURCES.items()})


def _directory(package: str) -> Path:
    try:
        return Path(import_module(package).__path__[0])
    except ModuleNotFoundError as exc:
        raise UserError(
            f"{exc}: install binwright[all] to list the events of all services"
        ) from exc


def _row(name: str, event: Event) -> tuple[str, str, str, str, str]:
    fields = ", ".join(map(code, sorted(event.fields)))
    return (
        code(name),
        ", ".join(sorted(event.levels)),
        ", ".join(sorted({one for source in event.sources for one in source.split(", ")})),
        fields,
        MEANINGS.get(name, ""),
    )
