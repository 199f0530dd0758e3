"""Builds the report of a table that its writer sends to the controller."""

from binwright.consumer.decide.writer.landing import Landing
from binwright.consumer.decide.writer.phases import Writer
from binwright.protocol.messages import TableReport
from binwright.protocol.model import TopicPartition


def report_of(writer: Writer, fault: str, now: float, *, refused: bool) -> TableReport:
    """Return the report of one table.

    Args:
        writer: The machine's state.
        fault: Why the writer makes no progress, for faults outside the machine; "" if none.
        now: Seconds, monotonic.
        refused: Whether a person must repair that fault.
    """
    phase = writer.phase
    if not isinstance(phase, Landing):
        state = "refused" if refused else "claiming"
        return TableReport(state=state, committed={}, fault=fault)  # type: ignore[arg-type]
    chain, topic = phase.chain, writer.config.table.topic
    oldest = chain.oldest_at
    return TableReport(
        state="refused" if phase.fault else "landing",
        committed={TopicPartition(topic, p): o for p, o in sorted(chain.committed.items())},
        age_s=0.0 if oldest is None else max(now - oldest, 0.0),
        pending_bytes=chain.pending_bytes,
        rows=phase.rows,
        commits=phase.commits,
        fault=phase.fault or fault,
    )
