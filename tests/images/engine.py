"""A container engine, and the base image of the Dockerfiles."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.programs import Done, Missing, call

BASE = "python:3.11-slim-bookworm"
STAND_IN = "binwright-test-base:bookworm"
PULL_S, BUILD_S, BOOTSTRAP_S = 120.0, 1_200.0, 900.0
PACKAGES = "ca-certificates,python3,python3-venv"
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def docker(
    *arguments: str,
    timeout_s: float = 120.0,
    environment: Mapping[str, str] | None = None,
    given: str = "",
) -> Done:
    """Run the engine's client; the outcome is the caller's to judge."""
    return call("docker", *arguments, timeout_s=timeout_s, environment=environment, given=given)


def engine() -> None:
    """Return if a container engine answers.

    Raises:
        Missing: None does.
    """
    if not shutil.which("docker"):
        raise Missing("no docker on this machine")
    if (told := docker("version", "--format", "{{.Server.Version}}")).returncode:
        raise Missing(f"no container engine answers: {told.stderr.strip()[:200]}")


def base(work: Path) -> str:
    """Return the name of the image to build upon: the real one, or a stand-in of the same kind.

    Raises:
        Missing: It is not here, cannot be pulled, and nothing can be put in its place.
    """
    if had(BASE):
        return BASE
    if not there(STAND_IN):
        _bootstrap(work / "base")
    return STAND_IN


def had(image: str) -> bool:
    """Tell whether an image is here, or could be pulled."""
    return there(image) or docker("pull", "--quiet", image, timeout_s=PULL_S).returncode == 0


def there(image: str) -> bool:
    """Tell whether an image is here."""
    return docker("image", "inspect", image).returncode == 0


def build(image: str, *arguments: str, given: str = "") -> None:
    """Build an image; fail with the builder's last words."""
    done = docker("build", "--tag", image, *arguments, timeout_s=BUILD_S, given=given)
    assert done.returncode == 0, f"{image}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def _bootstrap(root: Path) -> None:
    """Make the stand-in of Debian's packages: the same release, the same Python."""
    if not shutil.which("debootstrap") or os.geteuid() != 0:
        raise Missing(
            f"{BASE} is not here and cannot be pulled; debootstrap, as root, could stand in"
        )
    made = call(
        *("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)),
        timeout_s=BOOTSTRAP_S,
    )
    if made.returncode:
        raise Missing(f"no stand-in for {BASE}: debootstrap: {made.stdout.strip()[-300:]}")
    _trust_as_here(root)
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
    (root / "usr/local/bin/pip").touch(0o755)  # as the real one has it, for the images to take away
    packed = root.with_suffix(".tar")
    call("tar", "-C", str(root), "-cf", str(packed), ".", timeout_s=120).check_returncode()
    path = "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    done = docker("import", "--change", path, str(packed), STAND_IN)
    assert done.returncode == 0, done.stderr


def _trust_as_here(root: Path) -> None:
    """Let pip inside find its index, and believe who this machine believes."""
    known = "".join(
        path.read_text() for path in (root / "usr/share/ca-certificates").rglob("*.crt")
    )
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    own = [c for c in _CERTIFICATE.findall(bundle.read_text()) if c not in known]
    for number, certificate in enumerate(own):
        target = root / f"usr/local/share/ca-certificates/here-{number}.crt"
        target.write_text(certificate + "\n")
    call("chroot", str(root), "update-ca-certificates", timeout_s=60).check_returncode()
    if (pip := Path("/etc/pip.conf")).exists():
        shutil.copy(pip, root / "etc/pip.conf")
