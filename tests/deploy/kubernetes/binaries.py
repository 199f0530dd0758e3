"""Finds the control plane's programs: a shared archive of them, or built from source."""

import shutil
from pathlib import Path

from tests.programs import ProgramMissing, build_with_go, program_home, unpack_program

SOURCE = Path(__file__).parent / "kubebox"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
VERSION = "v1.36.3"
STAMP = (
    f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
    " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
)


def programs() -> Path:
    """Return a directory with etcd, the three control-plane programs, and kubectl.

    Raises:
        ProgramMissing: They are neither shared nor can they be built.
    """
    for tool in ("openssl", "unshare"):
        if not shutil.which(tool):
            raise ProgramMissing(f"no {tool} on this machine")
    with program_home("kubernetes", VERSION) as home:
        for program in ("kubebox", "kubectl"):
            if not (home / program).exists():
                _provide(program, home / program)
        for name in CONTROL_PLANE:
            if not (home / name).exists():
                (home / name).symlink_to("kubebox")
    return home


def _provide(program: str, target: Path) -> None:
    if unpack_program(program, target):
        return
    built = target.with_suffix(".new")
    _build(program, built)
    built.chmod(0o755)
    built.rename(target)


def _build(program: str, target: Path) -> None:
    package = {"kubebox": ".", "kubectl": "k8s.io/kubernetes/cmd/kubectl"}[program]
    build_with_go(
        program,
        *("build", "-trimpath", "-ldflags", STAMP, "-o", str(target), package),
        cwd=SOURCE,
        environment={"GOFLAGS": "-mod=readonly"},
    )
