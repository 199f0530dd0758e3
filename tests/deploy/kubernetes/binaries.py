"""Finds the control plane's programs: a shared archive of them, or built from source."""

import fcntl
import shutil
from pathlib import Path

from tests.programs import SHARED, ProgramMissing, run_program, unpack_program

from binwright.local.cache import cache_dir

SOURCE = Path(__file__).parent / "kubebox"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
VERSION = "v1.36.3"
STAMP = (
    f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
    " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
)
BUILD_S = 3_000.0


def programs() -> Path:
    """Return a directory with etcd, the three control-plane programs, and kubectl.

    Raises:
        ProgramMissing: They are neither shared nor can they be built.
    """
    for tool in ("openssl", "unshare"):
        if not shutil.which(tool):
            raise ProgramMissing(f"no {tool} on this machine")
    home = cache_dir() / "kubernetes" / VERSION
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
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
    if not shutil.which("go"):
        raise ProgramMissing(
            f"no {program} in {SHARED} and no Go compiler to build it from {SOURCE}"
        )
    built = target.with_suffix(".new")
    _build(program, built)
    built.chmod(0o755)
    built.rename(target)


def _build(program: str, target: Path) -> None:
    package = {"kubebox": ".", "kubectl": "k8s.io/kubernetes/cmd/kubectl"}[program]
    done = run_program(
        *("go", "build", "-trimpath", "-ldflags", STAMP, "-o", str(target), package),
        cwd=SOURCE,
        environment={"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        timeout_s=BUILD_S,
    )
    if done.returncode:
        raise ProgramMissing(f"{program} cannot be built here: {done.stderr.strip()[-500:]}")
