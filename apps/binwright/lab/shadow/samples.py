"""What a recording has of consumer groups, beside the measurements of their topics."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from binwright.protocol.fields import Amount, Number, Offsets, Partition
from binwright.protocol.metrics import Measurement
from binwright.protocol.wire import Decode, decoder


class MemberSample(NamedTuple):
    """A member of a group; in the recording an array of these values, in this order."""

    client: str  # its `client.id`
    host: str  # its address as its coordinator sees it
    instance: str | None  # its `group.instance.id`
    reads: tuple[Partition, ...]  # empty during a rebalance


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSample:
    """A consumer group in one pass of `binwright shadow record`; its topics' ends follow it."""

    group: str  # its name
    at_ms: Number  # wall clock, ms since 1970
    interval_s: Amount  # until the next pass
    state: str  # by Kafka's names: "Stable", "Empty", "Dead", ...
    type: Literal["classic", "consumer"]  # consumer: a broker assigns (KIP-848)
    assignor: str  # empty while there is none
    members: tuple[MemberSample, ...]  # an array each, in the order of its fields
    committed: Offsets  # partition -> the offset that the group reads next
    kind: Literal["group-sample/1"] = "group-sample/1"


decode_recorded: Decode[Measurement | GroupSample] = decoder(Measurement | GroupSample)
