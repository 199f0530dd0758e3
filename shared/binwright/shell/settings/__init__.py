"""Settings of all services: one TOML file, overridden by the environment, checked as a whole.

`BINWRIGHT_SETTINGS` names the file; `BINWRIGHT_<SECTION>__<NAME>` overrides one value.
Unknown keys are refused, all faults are told at once, and secrets print as stars.
"""

from binwright.shell.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.shell.settings.controller import ControllerSettings, HealthSettings
from binwright.shell.settings.fleets import EVERY_NAMESPACE, DockerSettings, KubernetesSettings
from binwright.shell.settings.kafka import KafkaSettings
from binwright.shell.settings.loading import OTHER_VARIABLES, load_settings, settings_environment
from binwright.shell.settings.model import FILE_VARIABLE, Settings
from binwright.shell.settings.monitor import MonitorSettings
from binwright.shell.settings.section import Bytes, Positive, Seconds, Section, TopicPattern

__all__ = [
    "EVERY_NAMESPACE",
    "FILE_VARIABLE",
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
    "TopicPattern",
    "load_settings",
    "settings_environment",
]
