"""Jars of other versions of Kafka, Spark and Delta than the embedded ones, for the same tests.

`KAFKA=3.7.2` or `SPARK=4.0.5+4.0.1`, a Spark and its Delta, in the environment of pytest: the
fixtures `broker`, `brokers` and `spark_url` are then of these. `make test SUITE=versions` runs them
all.
"""

import asyncio
import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.programs import program_home, run_program

from binwright.local.cache import cache_dir
from binwright.local.jars import ensure_jars, ivy_fetch, parse_lock
from binwright.local.java import find_java
from binwright.local.server import no_progress

KAFKA, SPARK = "KAFKA", "SPARK"
KAFKAS = ("3.7.2", "3.9.2", "4.0.2")
SPARKS = (
    "4.0.5+4.0.1",
    "4.0.5+4.4.0",
    "4.1.4+4.3.1",
    "4.1.4+4.4.0",
    "4.2.1+4.4.0",
)
"""Those that are tested beside the embedded ones; the oldest first."""
DOWNLOAD_S = 900.0
PYSPARK: Mapping[str, str] = {
    "4.0.5": "a0d44b0e7faf0458ad83b7aa664e7ed8b96beed8a55d66ce3b0dfac2309dfca6",
    "4.1.4": "bcbd5e18690cf79d438e97210ad06fb8d451a251bb77becc2b0418868d2acd73",
    "4.2.1": "d79b7c8ee41e66a9202fe6f600ca90b931ca571ae9dbdf31c58d2672e5102da0",
}
"""Versions of the package with Spark's jars, and their sha256."""
_JARS = "/deps/jars/"


def named() -> tuple[str, str]:
    """Return the versions of Kafka and of Spark that the environment names; "": the embedded."""
    return os.environ.get(KAFKA, ""), os.environ.get(SPARK, "")


async def kafka_jars(version: str) -> tuple[Path, ...]:
    """Return the jars of a Kafka; "": none, as the embedded one is started with."""
    return await _locked(f"kafka-{version}") if version else ()


async def spark_jars(versions: str) -> tuple[Path, ...]:
    """Return the jars of a Spark and its Delta; "": none, as above."""
    if not versions:
        return ()
    spark, _, delta = versions.partition("+")
    minor = spark.rpartition(".")[0]
    jars = await _locked(f"delta-{delta}-spark-{minor}")
    return (*jars, *await asyncio.to_thread(_spark, spark))


async def _locked(name: str) -> tuple[Path, ...]:
    artifacts = parse_lock(Path(__file__).with_name(f"{name}.lock").read_text())
    fetch = ivy_fetch(await find_java(), name, no_progress)
    return await ensure_jars(artifacts, cache_dir() / "jars" / name, fetch)


def _spark(version: str) -> tuple[Path, ...]:
    """Return Spark's jars, out of the package that brings them to Python."""
    with program_home("pyspark", version) as home:
        jars = home / "jars"
        if not jars.exists():
            with TemporaryDirectory(dir=home) as scratch:
                place = Path(scratch)
                wanted = place / "pyspark.txt"
                wanted.write_text(f"pyspark=={version} --hash=sha256:{PYSPARK[version]}\n")
                pip = (sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes")
                options = ("--no-deps", "--no-build-isolation", "--dest", scratch, "-r")
                done = run_program(*pip, *options, str(wanted), timeout_s=DOWNLOAD_S)
                assert done.returncode == 0, done.stderr
                (package,) = place.glob("pyspark-*.tar.gz")
                with tarfile.open(package) as packed:
                    members = [each for each in packed if _JARS in each.name]
                    packed.extractall(place, members, filter="data")
                (place / f"pyspark-{version}{_JARS}").replace(jars)
        return tuple(sorted(jars.glob("*.jar")))
