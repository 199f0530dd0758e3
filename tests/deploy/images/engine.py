"""Checks for a container engine, and provides the base image of the Dockerfiles."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import docker
import docker.errors
from docker.client import DockerClient
from tests.programs import ROOT, ProgramMissing, run_program
from tools.bases import PYTHON, bases

BASE = bases()[PYTHON].image
STAND_IN = "binwright-test-base:bookworm"
CALL_S, BOOTSTRAP_S = 1_200, 900.0
PACKAGES = "ca-certificates,python3,python3-venv"
TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")
"""The certificates that this machine trusts."""
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def engine() -> DockerClient:
    """Return a client of the container engine.

    Raises:
        ProgramMissing: None responds; the message says why.
    """
    try:
        client = docker.from_env(timeout=CALL_S)
        client.ping()
    except docker.errors.DockerException as exc:
        raise ProgramMissing(f"no container engine responds: {str(exc)[:200]}") from exc
    return client


def find_base_image(client: DockerClient, work: Path) -> str:
    """Return the name of the image to build upon: the real one, or a stand-in for it.

    Raises:
        ProgramMissing: It cannot be pulled, and no stand-in can be built.
    """
    if image_available(client, BASE):
        return BASE
    if not image_exists(client, STAND_IN):
        _bootstrap(client, work / "base")
    return STAND_IN


def image_available(client: DockerClient, image: str) -> bool:
    """Whether the engine has an image, or could pull it."""
    if image_exists(client, image):
        return True
    try:
        client.images.pull(image)
    except docker.errors.APIError:
        return False
    return True


def image_exists(client: DockerClient, image: str) -> bool:
    """Whether the engine has an image."""
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        return False
    return True


def build(
    client: DockerClient,
    image: str,
    context: Path = ROOT,
    dockerfile: str = "Dockerfile",
    arguments: Mapping[str, str] | None = None,
) -> None:
    """Build an image; raise `AssertionError` with the end of the builder's output."""
    try:
        client.images.build(
            path=str(context), tag=image, dockerfile=dockerfile, buildargs=arguments, rm=True
        )
    except docker.errors.BuildError as exc:
        output = "".join(line.get("stream", "") for line in exc.build_log)
        raise AssertionError(f"{image}: {exc}: {output[-4000:]}") from exc


def _bootstrap(client: DockerClient, root: Path) -> None:
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
    name, _, tag = STAND_IN.partition(":")
    client.api.import_image(str(packed), repository=name, tag=tag, changes=[path])


def _copy_certificates(root: Path) -> None:
    """Copy this machine's pip settings, and the certificates that it trusts."""
    known = "".join(
        path.read_text() for path in (root / "usr/share/ca-certificates").rglob("*.crt")
    )
    own = [c for c in _CERTIFICATE.findall(TRUSTED.read_text()) if c not in known]
    for number, certificate in enumerate(own):
        target = root / f"usr/local/share/ca-certificates/local-{number}.crt"
        target.write_text(certificate + "\n")
    run_program("chroot", str(root), "update-ca-certificates", timeout_s=60).check_returncode()
    if (pip := Path("/etc/pip.conf")).exists():
        shutil.copy(pip, root / "etc/pip.conf")
