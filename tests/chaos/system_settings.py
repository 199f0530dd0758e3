"""How large the system under test is, and the settings that its services have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.bombed_topics import AVRO, VARIANT, BombedTopics
from tests.chaos.evolving_topics import EvolvingTopics

from binwright.local.spark import SparkServer
from binwright.runtime.settings.group import Settings, load_settings

LAKE = "lake"  # in the directory of data
TOPICS = ("orders", "clicks")
PARTITIONS = 4
FEWEST_TABLES = len(TOPICS)
CAPACITY = 180_000.0  # bytes/s: the load keeps two to four consumers busy
LIMIT = 1.2 * CAPACITY
SLOTS = 6
PACE = 1.25 * LIMIT
"""What a consumer of a split partition can fetch, bytes of memory per second: about 15 % above the
limit as stored. Else one reads it alone."""
FRESHNESS_S = 2.0
COMPACT_FILES = 8  # the tables are compacted all the time
FILE_BYTES = 4_000_000
COLUMNS = "id BIGINT, customer STRING, amount DECIMAL(4,2), note STRING"
"""Of the second topic; nine in ten amounts have more digits, so these records are bad."""
RegistryTopics = EvolvingTopics | BombedTopics
"""Topics whose tables have the columns of schemas in a registry."""
STAGED_BYTES = 20_000_000  # of a consumer: what does not land for minutes fills it


@dataclass(frozen=True, slots=True)
class SystemShape:
    """How large the system is."""

    servers: int = 1  # brokers, and Spark servers: 1 or 2
    tables: int = FEWEST_TABLES  # those beyond two have one partition each
    freshness_s: float = FRESHNESS_S
    compact_files: int = COMPACT_FILES
    bombs: bool = False  # two more tables, and values in three that would take gigabytes
    split: bool = False  # the first partition gets twice the limit, and several consumers stage it

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics; faults are about the first two."""
        more = (VARIANT, AVRO) if self.bombs else ()
        return (*TOPICS, *more, *(f"more-{n}" for n in range(self.tables - len(TOPICS))))


def partition_count(topic: str) -> int:
    """Return how many partitions a topic has."""
    return PARTITIONS if topic in TOPICS else 1


def spark_settings(sparks: Sequence[SparkServer], addresses: Sequence[str]) -> Mapping[str, object]:
    """Return the settings of a lake by which these servers are found at these addresses."""
    return {"spark": ",".join(addresses), "token_file": sparks[0].token_file}


def chaos_settings(
    directory: Path,
    shape: SystemShape,
    kafka: str,
    sparks: Mapping[str, object],
    topics: RegistryTopics | None,
) -> Settings:
    """Return the settings of all services, which find Kafka and the lake at these addresses."""
    return load_settings(
        group="chaos",
        topics=shape.topics,
        log_format="json",
        log_level="debug",
        kafka={"bootstrap_servers": kafka, "request_timeout_s": 10.0},
        lake={
            "path": str(directory / LAKE),
            **sparks,
            "freshness_s": shape.freshness_s,
            "compact_files": shape.compact_files,
            # Else each compaction writes the whole table again, and half an hour fills the disk.
            "target_file_bytes": FILE_BYTES,
            "compact_below_bytes": FILE_BYTES // 2,
        },
        **_tables(topics),
        staging={"max_bytes": STAGED_BYTES},
        monitor={"window_s": 8.0},
        controller={
            "capacity_bytes_per_s": CAPACITY,
            "limit_bytes_per_s": LIMIT,
            "process_logs": directory,
            "max_slots": SLOTS,
            "split": shape.split,
            "replan_interval_s": 15.0,
            "plan_timeout_s": 60.0,
        },
        consumer={"drain_timeout_s": 20.0},
    )


def _tables(topics: RegistryTopics | None) -> dict[str, object]:
    if topics is None:
        return {"tables": [{"topics": [TOPICS[1]], "format": "json", "columns": COLUMNS}]}
    return {"tables": topics.tables, "registry": {"url": topics.url}}
