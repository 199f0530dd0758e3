"""Checks for a container engine, and provides the base image of the Dockerfiles."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.programs import ProgramMissing, ProgramResult, run_program

BASE = "python:3.11-slim-bookworm"
STAND_IN = "binwright-test-base:bookworm"
PULL_S, BUILD_S, BOOTSTRAP_S = 120.0, 1_200.0, 900.0
PACKAGES = "ca-certificates,python3,python3-venv"
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def docker(
    *arguments: str,
    timeout_s: float = 120.0,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> ProgramResult:
    """Run the engine's client; the caller checks the result."""
    return run_program(
        "docker", *arguments, timeout_s=timeout_s, environment=environment, stdin=stdin
    )


def require_engine() -> None:
    """Return if a container engine responds.

    Raises:
        ProgramMissing: None does; the message says why.
    """
    if not shutil.which("docker"):
        raise ProgramMissing("no docker on this machine")
    if (done := docker("version", "--format", "{{.Server.Version}}")).returncode:
        raise ProgramMissing(f"no container engine responds: {done.stderr.strip()[:200]}")


def find_base_image(work: Path) -> str:
    """Return the name of the image to build upon: the real one, or a stand-in for it.

    Raises:
        ProgramMissing: It cannot be pulled, and no stand-in can be built.
    """
    if image_available(BASE):
        return BASE
    if not image_exists(STAND_IN):
        _bootstrap(work / "base")
    return STAND_IN


def image_available(image: str) -> bool:
    """Whether the engine has an image, or could pull it."""
    return image_exists(image) or docker("pull", "--quiet", image, timeout_s=PULL_S).returncode == 0


def image_exists(image: str) -> bool:
    """Whether the engine has an image."""
    return docker("image", "inspect", image).returncode == 0


def build(image: str, *arguments: str, stdin: str = "") -> None:
    """Build an image; raise `AssertionError` with the end of the builder's output."""
    done = docker("build", "--tag", image, *arguments, timeout_s=BUILD_S, stdin=stdin)
    assert done.returncode == 0, f"{image}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def _bootstrap(root: Path) -> None:
    """Build the stand-in from Debian's packages: the same release, the same Python."""
    if not shutil.which("debootstrap") or os.geteuid() != 0:
        raise ProgramMissing(f"{BASE} cannot be pulled; a stand-in needs debootstrap and root")
    done = run_program(
        *("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)),
        timeout_s=BOOTSTRAP_S,
    )
    if done.returncode:
        raise ProgramMissing(f"no stand-in for {BASE}: debootstrap: {done.stdout.strip()[-300:]}")
    _copy_certificates(root)
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
    (root / "usr/local/bin/pip").touch(0o755)  # the real image has it; the Dockerfiles remove it
    packed = root.with_suffix(".tar")
    run_program("tar", "-C", str(root), "-cf", str(packed), ".", timeout_s=120).check_returncode()
    path = "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    done = docker("import", "--change", path, str(packed), STAND_IN)
    assert done.returncode == 0, done.stderr


def _copy_certificates(root: Path) -> None:
    """Copy this machine's pip settings, and the certificates that it trusts."""
    known = "".join(
        path.read_text() for path in (root / "usr/share/ca-certificates").rglob("*.crt")
    )
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    own = [c for c in _CERTIFICATE.findall(bundle.read_text()) if c not in known]
    for number, certificate in enumerate(own):
        target = root / f"usr/local/share/ca-certificates/local-{number}.crt"
        target.write_text(certificate + "\n")
    run_program("chroot", str(root), "update-ca-certificates", timeout_s=60).check_returncode()
    if (pip := Path("/etc/pip.conf")).exists():
        shutil.copy(pip, root / "etc/pip.conf")
