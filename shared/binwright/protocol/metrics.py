"""What monitors publish in the metrics topic, and what groups ask of them in the needs topic."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, NamedTuple

from binwright.protocol.fields import Amount, Number, Offset, Rate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.names import TopicName
from binwright.protocol.wire import Decode, sole_decoder

Quality = Literal["measured", "estimated", "warming", "stale"]
"""How far a rate can be trusted.

measured: from sizes. estimated: more than a tenth of it is records times bytes per record.
warming: over less than half the window, or not known yet. stale: this pass brought no sample.
"""


class PartitionRate(NamedTuple):
    """One partition in a `Measurement`; on the wire an array of these values, in this order."""

    partition: Number  # its number
    rate: Rate | None  # bytes/s as stored (compressed); null: not known yet, or it has no leader
    window_s: Amount  # over which the rate was measured
    end: Offset  # the next that will be written
    start: Offset  # the first that is kept; with tiered storage of the whole log
    bytes_per_record: Amount | None  # moving average; null: not known
    records_per_s: Amount | None = None  # offsets used: control records count
    size: Number | None = None  # bytes kept, the local part with tiered storage; null: not known
    quality: Quality = "measured"  # how far the rate can be trusted
    age_s: Amount = 0.0  # of the sample that all this rests on
    leader: Number | None = None  # the broker's id; null: the partition has no leader


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One topic in one pass of a monitor, or some of its partitions: large topics take several.

    `zones` has the partitions by the zones in which they can be read; empty: that is not known.
    """

    topic: TopicName  # its name
    at_ms: Number  # wall clock of the pass, ms since 1970
    monitor: str  # unique to the process: two may measure one topic
    number: Number  # of the pass; grows
    interval_s: Amount  # until the next pass
    count: Number  # partitions that the topic has, in this message or not; 0: it is deleted
    partitions: tuple[PartitionRate, ...]  # an array each, in the order of its fields
    zones: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)  # -> readable there
    kind: Literal["measurement/2"] = "measurement/2"
    KEY: ClassVar = "{0.topic}"

    def plain(self) -> dict[str, object]:
        """Return what its JSON is made of; by hand, as it is large and frequent."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        rows, zones = list(map(tuple, self.partitions)), dict(sorted(self.zones.items()))
        return {**values, "partitions": rows, "zones": zones}

    def rates(self) -> dict[TopicPartition, BytesPerSecond]:
        """Return the partitions whose rate is known."""
        return {
            TopicPartition(self.topic, p.partition): p.rate
            for p in self.partitions
            if p.rate is not None
        }

    def readable_in(self) -> dict[int, frozenset[str]]:
        """Return the zones in which each of these partitions can be read; empty: not known."""
        zones = defaultdict[int, list[str]](list)
        for zone, numbers in self.zones.items():
            for number in numbers:
                zones[number].append(zone)
        return {p.partition: frozenset(zones[p.partition]) for p in self.partitions}


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What is to be measured for a group; its controller repeats it, the last one counts."""

    group: str  # its name
    at_ms: Number  # wall clock, ms since 1970
    topics: tuple[TopicName, ...]  # names
    patterns: tuple[str, ...]  # regular expressions for whole names
    kind: Literal["needs/1"] = "needs/1"
    KEY: ClassVar = "{0.group}"


decode_measurement: Decode[Measurement] = sole_decoder(Measurement)
decode_needs: Decode[Needs] = sole_decoder(Needs)
