"""What reads bytes of others: each decoder, the errors it may raise, and valid inputs."""

import asyncio
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Any

import orjson
import yaml
from google.protobuf.message import DecodeError
from tests.builders import measurement, report
from tests.controller.fleets.kubernetes.refused_patches import ALLOWED
from tests.fuzz.structures import STRUCTURES
from tests.fuzz.target import Target
from tests.fuzz.value_targets import VALUE_TARGETS
from tests.kafka import batches
from tests.kafka.test_frames import HEAD_4, HEAD_10

from binwright.balancer import plan_file
from binwright.balancer.decide.proposals import decode_record
from binwright.consumer.stage import parquet
from binwright.controller.fleets.kubernetes.template import check_template, parse_template
from binwright.controller.fleets.kubernetes.template_patch import check_patch, patched
from binwright.controller.group_objects.allowed import check_allowed
from binwright.controller.group_objects.spec import settings_of
from binwright.controller.settings import ControllerProgramSettings
from binwright.kafka.batches import Batches, Limits
from binwright.kafka.columns import decode as decode_columns
from binwright.kafka.frames import ListOffsets, Metadata, TopicId, VersionedRequest, topic_id
from binwright.kafka.group_requests import (
    FetchGroupOffsets,
    FindCoordinators,
    coordinators,
    group_offsets,
)
from binwright.kafka.log_dirs import DescribeLogDirs, disk_bytes, is_refused, sizes
from binwright.kafka.segments import Segment
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol import wire
from binwright.protocol.commands import SplitReading, StartReading, StartWriting, decode_command
from binwright.protocol.errors import (
    MalformedMessage,
    PlacementError,
    SettingsError,
    TemplateRefused,
)
from binwright.protocol.group_plans import GroupPlan, decode_group_plan
from binwright.protocol.landing import (
    OffsetRange,
    RangeStaged,
    Staged,
    StageRange,
    decode_range,
    decode_staged,
)
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.metrics import Needs, PartitionRate, decode_measurement, decode_needs
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import CordonOrder, PinOrder, TableOrder, decode_order
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.ports.kafka import Record
from binwright.runtime.settings.loading import load
from binwright.scaler.keda.messages import CLASSES, ScaledObjectRef
from binwright.scaler.keda.triggers import KedaTriggers
from binwright.scaler.objects.spec import config_from, workload_of
from binwright.scaler.settings import ScalerSettings
from binwright.tables.ports import Footer, Table
from binwright.tables.stamp import Stamp, read_stamp
from binwright.testing.records import in_columns

ORDERS = TopicPartition("orders", 0)
TABLE = Table("orders", "g", "c")
STAGED = Staged(
    topic="orders",
    topic_id="an id",
    file="0-1-1-0a1b2c3d.parquet",
    rows=3,
    bytes=100,
    ranges={ORDERS: OffsetRange(0, 3)},
    slot=Slot(0),
    epoch=1,
)
NEEDS = Needs(group="g", at_ms=1, topics=("orders",), patterns=("cl.*",))
STAMP = Stamp(
    group="g",
    cluster="c",
    writer="w",
    sequence=1,
    topic_ids={"t": None},
    committed={TopicPartition("t", 0): 5},
    cuts={TopicPartition("t", 1): 2},
)
GROUP_PLAN = GroupPlan(
    group="g", generation=1, at_ms=1, valid_ms=9, bins=({ORDERS: 500}, {}), reason="load"
)
RANGE: Mapping[str, Any] = {
    "helper": Slot(1),
    "slot": Slot(0),
    "epoch": 1,
    "number": 1,
    "partition": ORDERS,
}
MESSAGES = (
    b'{"plan":1,"by":"x","kind":"brokers-approved/1"}',
    wire.encode(STAGED),
    wire.encode(TableOrder(topic="orders", paused=True, by="x")),
    wire.encode(PinOrder(topic="orders", partition=3, slot=Slot(2), by="x", until_ms=9)),
    wire.encode(CordonOrder(slot=Slot(2), state="drained", by="x", reason="y")),
    wire.encode(NEEDS),
    wire.encode(GROUP_PLAN),
    wire.encode(measurement("orders", [PartitionRate(0, BytesPerSecond(1.0), 5.0, 9, 0, None)])),
    wire.encode(report(Slot(0), 1, reading={ORDERS: 5}, writing=["orders"])),
    wire.encode(StartReading(term=1, revision=2, epoch=3, offsets={ORDERS: 4})),
    wire.encode(StartWriting(term=1, revision=2, epoch=3, tables=("orders",))),
    wire.encode(SplitReading(term=1, epoch=3, partitions={ORDERS: (Slot(0), Slot(1))})),
    wire.encode(StageRange(**RANGE, topic_id="an id", range=OffsetRange(0, 9))),
    wire.encode(RangeStaged(**RANGE, piece=OffsetRange(0, 3), rows=3, files=(STAGED,))),
)
PARTS = tuple(
    value for _, value in wire.split_message(b"orders", b'{"a": "%s"}' % (b"x" * 900), 500)
)
ROWS = {ORDERS: [Record(offset, 0, b"k", b"v" * 50) for offset in range(20)]}
STAGED_FILE = parquet.encode(in_columns(ROWS), Footer("an id", 20, {0: (0, 20)})).to_pybytes()
SETTINGS = load(
    ControllerProgramSettings,
    topics=["base"],
    kubernetes={"groups": True, "sinks": ["/x"]},
)
GROUP_SPECS = tuple(
    map(
        orjson.dumps,
        (
            {
                "topics": ["orders"],
                "sink": {"path": "/x", "freshnessSeconds": 5},
                "minConsumers": 1,
                "control": {
                    "frozenHours": ["22:00-06:00"],
                    "movesPerHour": 3,
                    "pins": [{"topic": "orders", "partitions": [1], "consumer": 2}],
                },
                "tables": [{"topics": ["orders"], "format": "json", "columns": "id BIGINT"}],
            },
            {
                "topicPatterns": ["a.*"],
                "excludeTopicPatterns": ["ab.*"],
                "limitBytesPerSecond": 1e6,
                "slotLimits": {"1": 2e6},
                "budgets": {"planTimeoutSeconds": 30},
                "mode": "approve",
                "start": "latest",
                "paused": True,
                "group": "g",
            },
        ),
    )
)
SCALED_SPEC = orjson.dumps(
    {
        "group": "g",
        "topics": ["orders"],
        "minReplicas": 1,
        "slaSeconds": 5,
        "schedules": [{"start": "08:00", "end": "09:30", "minReplicas": 2}],
        "workload": {"kind": "Deployment", "name": "x"},
    }
)
KEDA_REQUEST: bytes = CLASSES["ScaledObjectRef"](
    name="billing",
    namespace="n",
    scalerMetadata={"group": "g", "topics": "orders", "recordsPerSecond": "100"},
).SerializeToString()
PLAN_FILE = plan_file.encode({ORDERS: (1, 2, 3)}).encode()
POD = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "consumer", "env": []}]},
}


def _parts(content: bytes) -> object:
    """Join parts, separated as no valid one is."""
    joined = wire.PartialMessages()
    return [joined.join(b"part/orders/0", part) for part in content.split(b"\n\n")]


def _records(content: bytes) -> object:
    """Read all records of stored batches; what is raised becomes a `DecodeFault`."""
    stored = Batches(content)
    stored.limit = stored.large_limit = 16_000_000
    found = 0
    while stored.has_next():
        batch = stored.next_batch()
        found += sum(1 for _ in batch)
    return found


def _columns(content: bytes) -> object:
    """Decode the records of stored batches together; nothing is raised once they are found."""
    stored, segments = Batches(content), list[Segment]()
    stored.limit = stored.large_limit = 16_000_000
    stored.poll = Limits(stored.limit, poll_bytes=1 << 30)
    while stored.has_next():
        with suppress(Exception):
            segments += [part for part in stored.next_batch() if part.positions]
    return decode_columns(segments) if segments else None


def _response(request: VersionedRequest, versions: tuple[int, int], content: bytes) -> Any:
    """Return the response; None for one at which aiokafka closes the connection."""
    prepared = request.prepare({request.API_KEY: versions})
    try:
        return prepared.RESPONSE_TYPE.decode(BytesIO(content))
    except (ValueError, TypeError, struct.error):
        return None


def _log_dirs(newest: int, content: bytes) -> object:
    response = _response(DescribeLogDirs({"a": [0]}, newest), (1, newest), content)
    return response and (is_refused(response), sizes(response), disk_bytes(response))


def _topic_id(newest: int, content: bytes) -> object:
    response = _response(TopicId("a"), (0, newest), content)
    return response and (topic_id(response),)


def _coordinators(newest: int, content: bytes) -> object:
    response = _response(FindCoordinators(["g"]), (0, newest), content)
    return response and list(coordinators(["g"], response))


def _group_offsets(newest: int, content: bytes) -> object:
    response = _response(FetchGroupOffsets(["g"]), (0, newest), content)
    return response and [(*found[:2], list(found[2])) for found in group_offsets(["g"], response)]


def _group_object(content: bytes) -> object:
    if not isinstance(spec := _json(content), dict):
        return None
    settings = settings_of({"metadata": {"name": "x", "namespace": "n"}, "spec": spec}, SETTINGS)
    check_allowed(settings, SETTINGS, "n")
    return settings


def _scaled_object(content: bytes) -> object:
    if not isinstance(spec := _json(content), dict):
        return None
    obj = {"metadata": {"name": "x", "namespace": "n"}, "spec": spec}
    return workload_of(obj), config_from(spec, "x")


def _json(content: bytes) -> object:
    """Return the value; None for what the API server would not take."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _keda_trigger(content: bytes) -> object:
    asked = ScaledObjectRef.from_message(CLASSES["ScaledObjectRef"].FromString(content))

    async def ask() -> object:
        return KedaTriggers(lambda: None, ScalerSettings()).ask(asked)

    return asyncio.run(ask())


def _template(content: bytes) -> object:
    return parse_template(content.decode(errors="replace"), "x")


def _own_template(content: bytes) -> object:
    return check_template(_json(content), "x")


def _template_patch(content: bytes) -> object:
    patch = _json(content)
    check_patch(patch, "x", KubernetesSettings())
    assert isinstance(patch, dict), patch
    return patched(check_template(POD, "x"), patch, "x")


def _stamp(content: bytes) -> object:
    return read_stamp(content.decode(errors="surrogateescape"), TABLE)


def _pattern(content: bytes) -> object:
    pattern = compile_pattern(content.decode(errors="replace"))
    return pattern.matches("a" * 240 + "-orders")


def _footer(content: bytes) -> object:
    wanted = parquet.footer_bytes(content)
    return None if wanted is None else parquet.decode_footer(content[-wanted:])


def _staged_file(content: bytes) -> object:
    return parquet.is_whole(content)


def _text(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


_ONE, _NULL, _TAGS = struct.pack(">i", 1), struct.pack(">h", -1), b"\0"
_ZERO, _SHORT = bytes(4), bytes(2)  # a number of 4 bytes, one of 2
_SIZE = struct.pack(">iqqB", 0, 5, 0, 0)
_FRAMES = {
    "metadata": _ZERO * 2 + _NULL + _ONE + _ONE + _SHORT + _text(b"orders") + b"\0" + _ZERO,
    "offsets": _ZERO + _ONE + _text(b"orders") + _ONE + struct.pack(">ihqq", 0, 0, -1, 5),
    "coordinators 1": _ZERO + _SHORT + _NULL + _ONE + _text(b"host") + _ONE,
    "coordinators 4": (
        _ZERO + b"\x02\x02g" + _ONE + b"\x05host" + _ONE + _SHORT + b"\0" + _TAGS + _TAGS
    ),
    "group offsets 3": (
        _ZERO + _ONE + _text(b"orders") + _ONE + struct.pack(">iq", 0, 5) + _NULL + _SHORT * 2
    ),
    "group offsets 8": (
        _ZERO + b"\x02\x02g\x02\x07orders\x02" + struct.pack(">iqi", 0, 5, 1)
        + b"\0" + _SHORT + _TAGS * 2 + _SHORT + _TAGS * 2
    ),
    "log dirs 1": (
        _ZERO + _ONE + _SHORT + _text(b"/d") + _ONE + _text(b"a") + _ONE
        + _SIZE
    ),
    "log dirs 4": (
        _ZERO + _SHORT + b"\x02" + _SHORT + b"\x03/d\x02\x02a\x02"
        + _SIZE + _TAGS * 2 + struct.pack(">qq", 9, 8) + _TAGS * 2
    ),
    "topic id 4": HEAD_4 + struct.pack(">ihh", 1, 0, 6) + b"orders" + bytes(20),
    "topic id 10": HEAD_10 + b"\x02" + _SHORT + b"\x07orders" + bytes(range(16)) + bytes(20),
}  # fmt: skip


def _frame(name: str, decode: Callable[[bytes], object]) -> tuple[str, Target]:
    return f"{name} frame", Target(decode, (), (_FRAMES[name],))


_STORED = tuple(
    batches.stored(5, 3, compression=codec) for codec in (0, batches.GZIP, batches.SNAPPY)
) + tuple(batches.stored(5, 30, compression=codec) for codec in (batches.LZ4, batches.ZSTD))

TARGETS: Mapping[str, Target] = {
    **{
        f"{name} message": Target(decode, (MalformedMessage,), MESSAGES)
        for name, decode in (
            ("inbound", decode_inbound),
            ("order", decode_order),
            ("command", decode_command),
            ("measurement", decode_measurement),
            ("needs", decode_needs),
            ("announcement", decode_staged),
            ("part", decode_range),
            ("group plan", decode_group_plan),
            ("broker plan", decode_record),
        )
    },
    "parts": Target(_parts, (MalformedMessage,), (*PARTS, b"\n\n".join(PARTS))),
    "stamp": Target(_stamp, (), (STAMP.encode().encode(),)),
    "record batch": Target(
        _records,
        (Exception,),
        (*_STORED, batches.marker(3), *(batches.legacy(magic, 3) for magic in (0, 1))),
    ),
    "record batches": Target(_columns, (), (*_STORED, b"".join(_STORED))),
    "staged file's footer": Target(_footer, (), (STAGED_FILE, STAGED_FILE[-600:])),
    **VALUE_TARGETS,
    **STRUCTURES,
    "staged file": Target(_staged_file, (), (STAGED_FILE,)),
    **dict(
        _frame(name, decode)
        for name, decode in (
            ("metadata", partial(_response, Metadata(None), (0, 4))),
            ("offsets", partial(_response, ListOffsets([]), (2, 2))),
            *((f"coordinators {newest}", partial(_coordinators, newest)) for newest in (1, 4)),
            *((f"group offsets {newest}", partial(_group_offsets, newest)) for newest in (3, 8)),
            *((f"log dirs {newest}", partial(_log_dirs, newest)) for newest in (1, 4)),
            *((f"topic id {newest}", partial(_topic_id, newest)) for newest in (4, 10)),
        )
    ),
    "ConsumerGroup": Target(_group_object, (SettingsError,), GROUP_SPECS),
    "ScaledGroup": Target(_scaled_object, (SettingsError,), (SCALED_SPEC,)),
    "KEDA trigger": Target(_keda_trigger, (DecodeError, SettingsError), (KEDA_REQUEST,)),
    "pod template": Target(_template, (TemplateRefused,), (yaml.safe_dump(POD).encode(),)),
    "own pod template": Target(_own_template, (TemplateRefused,), (orjson.dumps(POD),)),
    "fields of a pod": Target(_template_patch, (TemplateRefused,), (orjson.dumps(ALLOWED),)),
    "topic pattern": Target(_pattern, (ValueError,), (b"cl.*|(a|b)+_", b"(a{1,9}){3}[a-c]?")),
    "plan file": Target(plan_file.decode, (PlacementError,), (PLAN_FILE,)),
}
