"""What a table's writer reports to the controller."""

from binwright.consumer.decide.land.states import Landing, Writer
from binwright.protocol.metadata import TableCompaction, TableRegistration, TableReport


def table_report(
    writer: Writer,
    fault: str,
    now: float,
    *,
    refused: bool,
    appended: str = "",
    compaction: TableCompaction | None = None,
    registration: TableRegistration | None = None,
) -> TableReport:
    """Return the report of one table.

    Args:
        writer: The machine's state.
        fault: Why the writer makes no progress, for faults outside the machine; "" if none.
        now: Seconds, monotonic.
        refused: Whether a person must repair that fault.
        appended: Why Spark writes rows again; "" if files become the table's.
        compaction: Of its files; None if they are neither merged nor sorted.
        registration: In a catalog; None if it is not to be.
    """
    landing = writer.phase if isinstance(writer.phase, Landing) else writer.last
    first, *more = writer.config.table.topics
    topic, topics = (None, (first, *more)) if more else (first, ())
    if landing is None:
        return TableReport(
            topic=topic,
            topics=topics,
            state="refused" if refused else "claiming",
            committed={},
            fault=fault,
        )
    chain = landing.chain
    oldest = chain.oldest_at
    state = "refused" if landing.fault or refused else "paused" if landing.paused else "landing"
    return TableReport(
        topic=topic,
        topics=topics,
        state=state,  # type: ignore[arg-type]
        committed=dict(sorted(chain.committed.items())),
        age_s=0.0 if oldest is None else max(now - oldest, 0.0),
        pending_bytes=chain.pending_bytes,
        rows=landing.rows,
        bad=landing.bad,
        skipped=landing.skipped,
        commits=landing.commits,
        newest_ms=landing.newest_ms,
        appended=appended,
        compaction=compaction,
        registration=registration,
        operation=None if landing.operation is None else landing.operation.reported(),
        fault=landing.fault or fault or (landing.paused and f"paused {landing.paused}"),
    )
