"""Settings of all programs: one TOML file, overridden by the environment, checked as a whole.

`BINWRIGHT_SETTINGS` names the file; `BINWRIGHT_<SECTION>__<NAME>` overrides one value.
Unknown keys are refused, all faults are reported at once, and secrets print as stars.
"""

from binwright.runtime.settings.consumer import ConsumerSettings, LakeSettings, StagingSettings
from binwright.runtime.settings.controller import ControllerSettings, HealthSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import (
    load,
    load_settings,
    readable_password,
    settings_environment,
)
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.runtime.settings.programs import (
    EVERY_NAME,
    FILE_VARIABLE,
    ProgramSettings,
    Settings,
    TopicSettings,
)
from binwright.runtime.settings.registry import RegistrySettings
from binwright.runtime.settings.section import (
    Bytes,
    Positive,
    Seconds,
    Section,
    TopicPatterns,
    check_distinct,
)
from binwright.runtime.settings.tables import DecodingSettings, TableSettings
from binwright.runtime.settings.targets import (
    TableNames,
    Target,
    Targets,
    check_forms,
    forms_differ,
)

__all__ = [
    "EVERY_NAME",
    "FILE_VARIABLE",
    "Bytes",
    "ConsumerSettings",
    "ControllerSettings",
    "DecodingSettings",
    "HealthSettings",
    "KafkaSettings",
    "LakeSettings",
    "MonitorSettings",
    "Positive",
    "ProgramSettings",
    "RegistrySettings",
    "Seconds",
    "Section",
    "Settings",
    "StagingSettings",
    "TableNames",
    "TableSettings",
    "Target",
    "Targets",
    "TopicPatterns",
    "TopicSettings",
    "check_distinct",
    "check_forms",
    "forms_differ",
    "load",
    "load_settings",
    "readable_password",
    "settings_environment",
]
