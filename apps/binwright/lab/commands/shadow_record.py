"""`binwright shadow record`: every consumer group of a cluster, in a file."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from binwright.cli.options import Bootstrap, settings_at
from binwright.cli.runner import progress_console, run
from binwright.kafka.client import ClusterClient
from binwright.lab.shadow.recorder import GroupRecorder, MessageWriter
from binwright.monitor.passes import Measurer
from binwright.monitor.sampling import KafkaLogs
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.patterns import Pattern, compile_pattern
from binwright.protocol.selection import Selection
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.groups import ConsumerGroups
from binwright.streams.recording import FileRecordingWriter

HOUR_S = 3_600.0
BROKER_S = 5.0
"""Time that a pass waits for a broker."""
WINDOW_S, WINDOW_PASSES = 30.0, 3
"""A rate is that of so long, and of so many passes at least."""


def record(
    *,
    to: Annotated[Path, typer.Option(help="The file; one that is there is continued.")],
    hours: Annotated[
        float, typer.Option(min=0.001, help="How long is recorded; Ctrl-C ends it, too.")
    ] = 1.0,
    groups: Annotated[
        str, typer.Option(help="A regular expression for whole names of groups; else all.")
    ] = "",
    interval: Annotated[float, typer.Option(min=1, help="Seconds from one pass to the next.")] = 10,
    bootstrap_servers: Bootstrap = None,
) -> None:
    """Record the commits, members and logs of all consumer groups, for `binwright shadow rank`.

    Nothing in the cluster is changed. A broker's trouble, and a topic or group that vanishes, is
    logged and ends nothing.
    """
    settings, console = settings_at(bootstrap_servers), progress_console()
    try:
        patterns = (compile_pattern(groups),) if groups else ()
    except ValueError as exc:
        raise SettingsError(f"--groups: {exc}") from exc

    async def work() -> None:
        writer = FileRecordingWriter(to, BytesPerSecond(settings.controller.capacity))
        async with open_recorder(settings.kafka, writer, interval, patterns) as recorder:
            console.log(f"recording to {to} for {hours:g} hours; Ctrl-C ends it")
            try:
                async with asyncio.timeout(hours * HOUR_S) as over:
                    await recorder.run()
            except TimeoutError:
                if not over.expired():
                    raise
            finally:
                size = to.stat().st_size / 1e6
                console.log(
                    f"recorded {len(recorder.recorded)} groups in {recorder.passes} passes; {to} "
                    f"has {size:,.1f} MB: binwright shadow rank {to}"
                )

    raise typer.Exit(run(work, log_level="info"))


@asynccontextmanager
async def open_recorder(
    kafka: KafkaSettings, writer: MessageWriter, interval_s: float, patterns: Sequence[Pattern] = ()
) -> AsyncIterator[GroupRecorder]:
    """Give a recorder of a cluster's groups, with its connections; see `GroupRecorder`.

    Raises:
        BrokerUnavailable: No broker answers at the beginning.
    """
    window_s = max(WINDOW_S, WINDOW_PASSES * interval_s)
    async with (
        KafkaLogs(kafka, broker_timeout_s=BROKER_S) as logs,
        ClusterClient(kafka, broker_timeout_s=BROKER_S) as cluster,
    ):
        groups = ConsumerGroups(cluster, timeout_s=BROKER_S)
        measurer = Measurer(logs, Selection(), interval_s=interval_s, window_s=window_s)
        try:
            yield GroupRecorder(groups, measurer, writer, interval_s, patterns)
        finally:
            await groups.close()
