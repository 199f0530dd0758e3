"""A local S3: moto's server as a process on 127.0.0.1, with one bucket."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from binwright.local.child import Child, Command
from binwright.local.server import HOST, Server, accepts_connections, reserve_port
from binwright.runtime.environment import clean_environment

NEEDED = ("moto", "flask", "flask_cors", "boto3")
BUCKET, REGION, KEY = "lake", "us-east-1", "testing"  # moto takes any key
READY_S = 120.0


def missing_packages() -> list[str]:
    """Return what is not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def staging_url(port: int, prefix: str) -> str:
    """Return a prefix of the store at this port, as Arrow takes it."""
    where = f"s3://{KEY}:{KEY}@{BUCKET}/{prefix}"
    return f"{where}?scheme=http&endpoint_override={HOST}:{port}&region={REGION}"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Where a bucket is, for everybody who speaks to it."""

    port: int

    @property
    def url(self) -> str:
        """Return its HTTP address."""
        return f"http://{HOST}:{self.port}"

    def staging(self, prefix: str) -> str:
        """Return a prefix as Arrow takes it."""
        return staging_url(self.port, prefix)

    def spark_settings(self) -> Mapping[str, str]:
        """Return how Spark reaches it."""
        s3a = {
            "endpoint": self.url,
            "endpoint.region": REGION,
            "path.style.access": "true",
            "access.key": KEY,
            "secret.key": KEY,
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}

    def make_bucket(self) -> None:
        """Make the bucket."""
        self._client().create_bucket(Bucket=BUCKET)

    def keys(self, prefix: str) -> set[str]:
        """Return the objects there, without what stands for directories."""
        found = self._client().list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return {each["Key"] for each in found.get("Contents", ()) if not each["Key"].endswith("/")}

    def read(self, key: str) -> bytes:
        """Return an object's content."""
        content: bytes = self._client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return content

    def put(self, key: str, content: bytes) -> None:
        """Write an object."""
        self._client().put_object(Bucket=BUCKET, Key=key, Body=content)

    def _client(self) -> Any:
        import boto3  # noqa: PLC0415 - it may be missing

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=KEY,
        )


@asynccontextmanager
async def run_object_store(directory: Path) -> AsyncIterator[ObjectStore]:
    """Run a store whose content is in memory, and whose log is in `directory`."""

    with reserve_port() as port:
        pass  # werkzeug binds without SO_REUSEADDR's help: the number must be free

    async def serving(child: Child) -> None:
        await child.wait_until_ready(lambda: accepts_connections(port), deadline_s=READY_S)

    command = Command(
        title="moto's S3",
        argv=(sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)),
        directory=directory,
        log=directory / "moto.log",
        environment=clean_environment({}),
    )
    server = Server(command, until_ready=serving, grace_s=5.0)
    await server.start()
    try:
        yield ObjectStore(port)
    finally:
        await server.stop()
