"""Helm, which installs the chart: built once, from source."""

from pathlib import Path

from tests.programs import ROOT, ProgramResult, program_of_go, run_program

VERSION = "v3.22.0"
PACKAGE = "helm.sh/helm/v3/cmd/helm"
CHART = ROOT / "deploy" / "helm" / "binwright"
CHECK_S = 150.0


def helm() -> Path:
    """Return the program.

    Raises:
        ProgramMissing: It is neither shared nor can it be built.
    """
    return program_of_go("helm", PACKAGE, VERSION)


def run_helm(*arguments: str, home: Path) -> ProgramResult:
    """Run Helm, its own files in `home`; the caller judges the outcome."""
    places = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
    environment = {name: str(home / name.lower()) for name in places}
    return run_program(str(helm()), *arguments, timeout_s=CHECK_S, environment=environment)
