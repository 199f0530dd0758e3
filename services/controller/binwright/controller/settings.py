"""Settings of the controller: its group's, and its access to Kubernetes."""

from typing import Self

from pydantic import model_validator

from binwright.kubernetes.settings import NAMESPACES_UNUSED, KubernetesSettings
from binwright.runtime.settings import Settings


class ControllerProgramSettings(Settings):
    """What the controller reads."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    """Where consumers run, with the fleet `kubernetes`."""

    @model_validator(mode="after")
    def _namespaces_are_of_objects(self) -> Self:
        if self.kubernetes.namespaces and not self.kubernetes.groups:
            raise ValueError(NAMESPACES_UNUSED)
        return self
