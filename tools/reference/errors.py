"""The page of all errors, from their classes."""

import inspect
from collections.abc import Iterator, Mapping

from tools.reference.markdown import Entry, code, entries

from binwright.protocol import errors
from binwright.protocol.errors import BinwrightError
from binwright.runtime.run import exit_code

HEAD = """\
# Errors

Every error that binwright raises on purpose, by who is at fault, and in italics what to do. A
command or a service that ends with one has the exit code of its class; without an error, also by
SIGTERM or Ctrl-C, it is 0. Services end with few of them: what fails outside is tried again, and
[logged](log-events.md).
"""

FAULTS: Mapping[type[BinwrightError], str] = {
    errors.UserError: "A person has to change something: a setting, an option, a right.",
    errors.MalformedMessage: "Another process wrote a record that this one cannot read.",
    errors.ExternalError: "Kafka, Spark, storage or Kubernetes failed.",
    errors.Superseded: "Nobody is at fault.",
    errors.IllegalTransition: "binwright has a defect.",
}
"""Each class right below the root, and who is at fault."""


def page() -> str:
    """Return the reference, in Markdown."""
    parts = [HEAD]
    for root, fault in FAULTS.items():
        rows = map(_row, _family(root))
        parts.append(f"## {root.__name__}\n\n{fault} Exit code {exit_code(root)}.\n")
        parts.append(entries(rows))
    return "\n".join(parts)


def _family(root: type[BinwrightError]) -> Iterator[type[BinwrightError]]:
    """Yield a class and all below it, as they stand in the module."""
    for found in vars(errors).values():
        if inspect.isclass(found) and issubclass(found, root):
            yield found


def _row(found: type[BinwrightError]) -> Entry:
    wrong, _, remedy = inspect.cleandoc(found.__doc__ or "").partition("\n\n")
    return code(found.__name__), (), f"{wrong} *{remedy}*"
