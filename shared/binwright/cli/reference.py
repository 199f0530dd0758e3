"""`binwright settings`: every setting there is, as a page."""

import sys

from pydantic.fields import FieldInfo

from binwright.shell.settings import Section, Settings

HEAD = """\
# Settings

One TOML file, named by `BINWRIGHT_SETTINGS`, for all services. A variable overrides one value, as
`BINWRIGHT_GROUP` or `BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS`; a list is JSON:
`BINWRIGHT_TOPICS='["a"]'`.
Unknown keys are refused, and all that is wrong is told at once, before anything starts.

Two variables more are for the embedded broker and Spark: `BINWRIGHT_CACHE` is where their jars are
kept, `BINWRIGHT_IVY_SETTINGS` an Ivy settings file that names your mirror.
"""


def page() -> str:
    """Return the reference, in Markdown."""
    own = {n: f for n, f in Settings.model_fields.items() if not _section(f)}
    parts = [HEAD, _table(own)]
    for name, field in Settings.model_fields.items():
        if section := _section(field):
            parts += [f"## [{name}]\n\n{section.__doc__}\n", _table(section.model_fields)]
    return "\n".join(parts)


def _section(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _table(fields: dict[str, FieldInfo]) -> str:
    lines = ["| name | default | what it is |", "|---|---|---|"]
    for name, field in fields.items():
        lines.append(f"| `{name}` | {_default(field.default)} | {field.description} |")
    return "\n".join(lines) + "\n"


def _default(value: object) -> str:
    return "" if value in (None, (), {}) else f"`{value}`"


def command() -> None:
    """Print every setting there is, with its default."""
    sys.stdout.write(page())
