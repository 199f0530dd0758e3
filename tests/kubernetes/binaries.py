"""Where the control plane's programs come from: shared, built, or not to be had."""

import fcntl
import shutil
from pathlib import Path

from tests.programs import SHARED, Missing, call, unpacked

from binwright.embedded.cache import cache_dir

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
        Missing: They are neither shared nor can they be built.
    """
    for tool in ("openssl", "unshare"):
        if not shutil.which(tool):
            raise Missing(f"no {tool} on this machine")
    home = cache_dir() / "kubernetes" / VERSION
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for program in ("kubebox", "kubectl"):
            if not (home / program).exists():
                _make(program, home / program)
        for name in CONTROL_PLANE:
            if not (home / name).exists():
                (home / name).symlink_to("kubebox")
    return home


def _make(program: str, target: Path) -> None:
    if unpacked(program, target):
        return
    if not shutil.which("go"):
        raise Missing(f"no {program} in {SHARED} and no Go compiler to build it from {SOURCE}")
    fresh = target.with_suffix(".new")
    _build(program, fresh)
    fresh.chmod(0o755)
    fresh.rename(target)


def _build(program: str, target: Path) -> None:
    package = {"kubebox": ".", "kubectl": "k8s.io/kubernetes/cmd/kubectl"}[program]
    done = call(
        *("go", "build", "-trimpath", "-ldflags", STAMP, "-o", str(target), package),
        cwd=SOURCE,
        environment={"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        timeout_s=BUILD_S,
    )
    if done.returncode:
        raise Missing(f"{program} cannot be built here: {done.stderr.strip()[-500:]}")
