"""Where the control plane's programs come from: shared, built, or not to be had."""

import fcntl
import hashlib
import lzma
import os
import shutil
import subprocess
from pathlib import Path

from binwright.embedded.cache import cache_dir

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "bin"
SOURCE = Path(__file__).parent / "kubebox"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
VERSION = "v1.36.3"
STAMP = (
    f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
    " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
)
BUILD_S = 3_000.0


class Missing(Exception):
    """What is needed cannot be had here; says why."""


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
    fresh = target.with_suffix(".new")
    packed = SHARED / f"{program}.xz"
    if packed.exists():
        _unpack(packed, fresh)
    elif shutil.which("go"):
        _build(program, fresh)
    else:
        raise Missing(f"no {packed} and no Go compiler to build {program} from {SOURCE}")
    fresh.chmod(0o755)
    fresh.rename(target)


def _unpack(packed: Path, target: Path) -> None:
    lines = (SHARED / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in map(str.split, lines)}
    found = hashlib.sha256(packed.read_bytes()).hexdigest()
    if sums.get(packed.name) != found:
        raise Missing(f"{packed}: sha256 {found} is not the one in SHA256SUMS")
    with lzma.open(packed) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)


def _build(program: str, target: Path) -> None:
    package = {"kubebox": ".", "kubectl": "k8s.io/kubernetes/cmd/kubectl"}[program]
    command = ("go", "build", "-trimpath", "-ldflags", STAMP, "-o", str(target), package)
    done = subprocess.run(
        command,
        cwd=SOURCE,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    if done.returncode:
        raise Missing(f"{program} cannot be built here: {done.stderr.strip()[-500:]}")
