"""Runs `binwright doctor` as a process, and reads what it has found."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.integration.command_line import binwright

from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import settings_environment


class Report:
    """What one run has found."""

    def __init__(self, code: int, found: Mapping[str, Any]) -> None:
        self.code, self.ok = code, found["ok"]
        self.findings = found["findings"]

    def of(self, status: str) -> dict[str, str]:
        """Return what was found with this status: check -> what, and what to do."""
        return {
            each["check"]: f"{each['what']} | {each['do']}"
            for each in self.findings
            if each["status"] == status
        }


async def examined(
    kafka: KafkaSettings | str, lake: Path, spark: str, *arguments: str, **changed: Any
) -> Report:
    """Run the command with these settings; nothing but JSON may be printed."""
    if isinstance(kafka, str):
        kafka = KafkaSettings(bootstrap_servers=kafka)
    settings = load_settings(
        kafka=kafka, **({"lake": {"path": str(lake), "spark": spark}} | changed)
    )
    environment = {**os.environ, **settings_environment(settings)}
    code, output, errors = await binwright("doctor", "--json", *arguments, environment=environment)
    assert errors == ""
    return Report(code, json.loads(output))
