"""Settings of the controller: its group's, and its access to Kubernetes."""

from typing import Self

from pydantic import model_validator

from binwright.kubernetes.settings import KubernetesSettings, ScaledObjectSettings, check_namespaces
from binwright.runtime.settings.group import Settings


class ControllerProgramSettings(Settings):
    """What the controller reads."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    """Where consumers run, with the fleet `kubernetes`."""
    scaler: ScaledObjectSettings = ScaledObjectSettings()

    @model_validator(mode="after")
    def _namespaces_are_of_objects(self) -> Self:
        check_namespaces(self.kubernetes, self.scaler.objects)
        return self
