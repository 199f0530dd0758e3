"""Settings of all services: one TOML file, overridden by the environment, checked as a whole.

`BINWRIGHT_SETTINGS` names the file; `BINWRIGHT_<SECTION>__<NAME>` overrides one value.
Unknown keys are refused, all faults are told at once, and secrets print as stars.
"""

from binwright.shell.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.shell.settings.controller import ControllerSettings, HealthSettings
from binwright.shell.settings.fleets import DockerSettings, KubernetesSettings
from binwright.shell.settings.kafka import KafkaSettings
from binwright.shell.settings.loading import OTHER_VARIABLES, load_settings, settings_environment
from binwright.shell.settings.model import (
    FILE_VARIABLE,
    LANDING_SUFFIX,
    METADATA_SUFFIX,
    Settings,
)
from binwright.shell.settings.monitor import MonitorSettings
from binwright.shell.settings.section import Bytes, Positive, Seconds, Section

__all__ = [
    "FILE_VARIABLE",
    "LANDING_SUFFIX",
    "METADATA_SUFFIX",
    "OTHER_VARIABLES",
    "Bytes",
    "ConsumerSettings",
    "ControllerSettings",
    "DockerSettings",
    "HealthSettings",
    "KafkaSettings",
    "KubernetesSettings",
    "LakeSettings",
    "MonitorSettings",
    "Positive",
    "Seconds",
    "Section",
    "Settings",
    "StagingSettings",
    "load_settings",
    "settings_environment",
]
