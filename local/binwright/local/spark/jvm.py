"""What every Java process of Spark is started with: class path, options, environment."""

import sys
from pathlib import Path

from binwright.local.cache import cache_dir
from binwright.local.java.installation import Java
from binwright.local.java.ivy import ivy_fetch, pyspark_jars_dir
from binwright.local.java.jars import Fetch, ProgressCallback, ensure_jars, locked_jars
from binwright.local.java.options import jvm_flags
from binwright.local.process.child import clean_environment
from binwright.local.process.ports import HOST

# What Spark and Arrow reach into, as Spark's own launcher opens it.
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)


async def delta_jars(java: Java, progress: ProgressCallback) -> tuple[Path, ...]:
    """Return Delta's jars, fetched first if the cache lacks them.

    Raises:
        EmbeddedError: They could not be had.
    """
    return await _cached("delta", ivy_fetch(java, "Delta's", progress))


async def s3_jars(java: Java, progress: ProgressCallback) -> tuple[Path, ...]:
    """Return what a server needs for tables at s3a://, beside its own jars; see `delta_jars`."""
    return await _cached("s3", ivy_fetch(java, "S3's", progress))


async def _cached(name: str, fetch: Fetch) -> tuple[Path, ...]:
    return tuple(await ensure_jars(locked_jars(name), cache_dir() / "jars" / name, fetch))


def classpath(delta: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the class path of a Spark process that reads and writes Delta tables."""
    return (*delta, *sorted(pyspark_jars_dir().glob("*.jar")))


def spark_flags(directory: Path) -> tuple[str, ...]:
    """Return Java options of a Spark process whose traces stay in `directory`."""
    return (
        *jvm_flags(directory),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    )


def spark_environment() -> dict[str, str]:
    """Return the environment of a Spark process that is bound to 127.0.0.1."""
    return clean_environment(
        {
            "SPARK_HOME": str(pyspark_jars_dir().parent),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_HOSTNAME": "localhost",  # a host name often does not resolve in containers
            "PYSPARK_PYTHON": sys.executable,
        }
    )
