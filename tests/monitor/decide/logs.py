"""A log with a known load, and helpers that feed its samples to an estimator."""

from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.ports.kafka import LogSample


class Log:
    """A partition's log that a test writes to, truncates and moves."""

    def __init__(self, leader: int = 1) -> None:
        self.leader, self.start, self.end, self.size = leader, 0, 0, 0
        self.size_known = True

    def write(self, records: int, record_bytes: int = 100) -> "Log":
        self.end += records
        self.size += records * record_bytes
        return self

    def retain(self, records: int, record_bytes: int = 100) -> "Log":
        records = min(records, self.end - self.start)
        self.start += records
        self.size -= records * record_bytes
        return self

    @property
    def sample(self) -> LogSample:
        return LogSample(self.leader, self.start, self.end, self.size if self.size_known else None)


def sample_at(log: Log, at: float, record_bytes: float | None = None) -> LogSample:
    """Return a sample with its time, s, and a record's measured size, bytes."""
    sample = log.sample
    return LogSample(sample.leader, sample.start, sample.end, sample.size, at, record_bytes)


def feed(rates: TopicRates, now: float, log: Log | None) -> PartitionRate:
    return rates.feed(now, {0: log.sample if log else None})[0]


def speed(measured: PartitionRate) -> float | None:
    return measured.rate


def after(passes: int, rates: TopicRates, log: Log, records: int = 10) -> PartitionRate:
    """Sample at 0, 1, ... `passes` s, with `records` of 100 bytes written in each second."""
    measured = feed(rates, 0, log)
    for now in range(1, passes + 1):
        measured = feed(rates, now, log.write(records))
    return measured
