"""Looks at staging and Spark: a probe file is written here, read by each server, and deleted."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Self
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.land.lake.delta import add_files, spark_path
from binwright.consumer.land.lake.faults import LakeErrors, mentions
from binwright.consumer.land.lake.staged_rows import literal
from binwright.consumer.stage.file_staging import FileStaging
from binwright.inspect.decide.doctor.findings import Finding
from binwright.inspect.decide.doctor.lake import Delta, Spark, StagingProbe, probe_seen
from binwright.lake.session import ReconnectingSession, reported_by_server
from binwright.protocol.errors import LakeUnavailable, StagingUnavailable
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.spark_url import redacted_url

QUERY_S = 25.0  # of one server; the first query of a new server takes seconds
NO_DELTA = ("DATA_SOURCE_NOT_FOUND", "Failed to find data source", "ClassNotFoundException")
EXTENSIONS, CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
PLAIN_CATALOGS = ("", "builtin")
OWN_CATALOG = "org.apache.spark.sql.delta"  # with it the extension is due; vendors have theirs


@dataclass(frozen=True, slots=True)
class ProbeFile:
    """A file in the staging location; without a name it could not be written."""

    staging: StagingProbe
    path: str = ""  # as Spark names it
    content: str = ""


@asynccontextmanager
async def probe_file(staging_path: str) -> AsyncIterator[ProbeFile]:
    """Write a file into the staging location; delete it at the end, with what was made for it."""
    token = uuid4().hex
    name = f"doctor-{token[:8]}.parquet"
    async with FileStaging(staging_path) as staging:
        try:
            probe = await staging.write_probe(name, token)
        except StagingUnavailable as exc:
            yield ProbeFile(StagingProbe(str(staging), str(exc)))
            return
        outcome = StagingProbe(str(staging), "", bool(probe.created), probe.free_bytes)
        try:
            yield ProbeFile(outcome, f"{spark_path(staging_path).rstrip('/')}/{name}", token)
        finally:
            await staging.delete_probe(name, probe)


class ConnectServer:
    """One Spark Connect server. An async context manager."""

    def __init__(self, url: str, lake: LakeSettings) -> None:
        self.address = redacted_url(url)
        self._lake, self._in_place = lake.path.rstrip("/"), lake.commit == "auto"
        self._errors = LakeErrors(self._lake, self.address)
        self._session = ReconnectingSession(partial(lake.connection, url))

    async def __aenter__(self) -> Self:
        """Return self; the first call connects."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the session."""
        await self._session.close()

    async def look(self) -> Spark:
        """Return what the server is.

        Raises:
            LakeUnavailable: It does not answer, or refuses; says what to check.
        """
        try:
            return await self._session.run(self._look, QUERY_S)
        except (PySparkException, OSError, ValueError) as exc:  # a token's file, or a time-out
            raise LakeUnavailable(self._errors.reason(exc)) from exc

    def _look(self, spark: SparkSession) -> Spark:
        version = str(spark.version)
        began = time.time()
        (micros,) = spark.sql("SELECT unix_micros(current_timestamp())").collect()[0]
        middle = (began + time.time()) / 2
        nothing = f"{spark_path(self._lake)}/doctor-{uuid4().hex}"
        delta, appends = _delta(spark, nothing), None
        if delta == "ready" and self._in_place:
            added = add_files(spark, nothing, "", f"{nothing}/lease", [f"{nothing}/file"])
            # An extension for these versions looks for the lease first, and finds none.
            appends = added.what if added.verdict == "table_not_in_place" else ""
        return Spark(version, delta, micros / 1e6 - middle, appends)

    async def read(self, probe: ProbeFile) -> Finding:
        """Return whether the server reads the probe."""
        seen = error = ""
        try:
            seen = await self._session.run(lambda spark: _content(spark, probe.path), QUERY_S)
        except (PySparkException, OSError) as exc:
            error = self._errors.reason(exc)
        return probe_seen(self.address, probe.path, probe.content, seen, error)


def _content(spark: SparkSession, path: str) -> str:
    rows = spark.read.schema("content STRING").parquet(literal(path)).collect()
    return str(rows[0]["content"]) if rows else ""


def _delta(spark: SparkSession, nothing: str) -> Delta:
    """Return whether there is Delta, by looking at a path where nothing is."""
    try:
        _ = spark.read.format("delta").load(nothing).schema
    except PySparkException as exc:
        if not reported_by_server(exc):
            raise
        if mentions(exc, *NO_DELTA):
            return "missing"
    catalog, extensions = spark.conf.get(CATALOG, "") or "", spark.conf.get(EXTENSIONS, "") or ""
    if catalog in PLAIN_CATALOGS:
        return "not set up"
    return "ready" if "Delta" in extensions or OWN_CATALOG not in catalog else "not set up"
