"""The command by which the runbook has the cause of an alert found."""

import re

from tests.programs import ROOT

RUNBOOK = ROOT / "docs" / "runbook.md"
EXAMPLE = "orders"
"""What stands for the alert's topic there."""


def command_of(alert: str, topic: str) -> list[str]:
    """Return the arguments of `binwright` for an alert about a topic."""
    sections = re.split(r"^## ", RUNBOOK.read_text(), flags=re.MULTILINE)
    (section,) = (each for each in sections if each.startswith(f"{alert}\n"))
    (command,) = re.findall(r"^- \*\*Command:\*\* `binwright (.+?)`", section, re.MULTILINE)
    return str(command).replace(EXAMPLE, topic).split()
