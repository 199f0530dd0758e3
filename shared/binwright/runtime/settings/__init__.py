"""Settings of all services: one TOML file, overridden by the environment, checked as a whole.

`BINWRIGHT_SETTINGS` names the file; `BINWRIGHT_<SECTION>__<NAME>` overrides one value.
Unknown keys are refused, all faults are reported at once, and secrets print as stars.
"""

from binwright.runtime.settings.brokers import BrokerSettings
from binwright.runtime.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.runtime.settings.controller import ControllerSettings, HealthSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.kubernetes import EVERY_NAMESPACE, KubernetesSettings
from binwright.runtime.settings.loading import OTHER_VARIABLES, load_settings, settings_environment
from binwright.runtime.settings.model import FILE_VARIABLE, Settings
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.runtime.settings.scaler import (
    LocalGroupSettings,
    ScaledGroupSettings,
    ScalerSettings,
)
from binwright.runtime.settings.section import Bytes, Positive, Seconds, Section, TopicPattern
from binwright.runtime.settings.steering import SteeredGroupSettings, SteeringSettings

__all__ = [
    "EVERY_NAMESPACE",
    "FILE_VARIABLE",
    "OTHER_VARIABLES",
    "BrokerSettings",
    "Bytes",
    "ConsumerSettings",
    "ControllerSettings",
    "HealthSettings",
    "KafkaSettings",
    "KubernetesSettings",
    "LakeSettings",
    "LocalGroupSettings",
    "MonitorSettings",
    "Positive",
    "ScaledGroupSettings",
    "ScalerSettings",
    "Seconds",
    "Section",
    "Settings",
    "StagingSettings",
    "SteeredGroupSettings",
    "SteeringSettings",
    "TopicPattern",
    "load_settings",
    "settings_environment",
]
