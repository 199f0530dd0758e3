"""The external scaler, asked by gRPC as KEDA asks it: with the contract's own bytes."""

import asyncio
import struct
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from tests.scaler.fakes import FakeKafka

from binwright.local.server import HOST, reserve_port
from binwright.protocol.errors import SettingsError
from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler.keda.messages import CLASSES, ScaledObjectRef
from binwright.scaler.keda.server import CALLS, serve_keda
from binwright.scaler.keda.triggers import TRIGGERS, KedaTriggers
from binwright.scaler.passes import Scaler
from binwright.scaler.settings import ScalerSettings

PATIENCE_S = 20.0
ELSEWHERE = "192.0.2.1"  # no address of this machine alone
METADATA = {"scalerAddress": "scaler:6000", "group": "orders", "recordsPerSecond": "100"}
MANY = [40.0] * 6  # for three replicas of 100/s


def text(number: int, value: bytes | str) -> bytes:
    """Return a field of a message that holds text or a message, as protobuf writes it."""
    raw = value.encode() if isinstance(value, str) else value
    assert len(raw) < 128
    return bytes([number << 3 | 2, len(raw)]) + raw


def reference(metadata: Mapping[str, str] = METADATA) -> bytes:
    """Return a ScaledObjectRef."""
    pairs = (text(3, text(1, key) + text(2, value)) for key, value in metadata.items())
    return text(1, "worker") + text(2, "shop") + b"".join(pairs)


class Keda:
    """A client that knows the paths of the methods, and bytes."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    async def call(self, method: str, request: bytes) -> bytes:
        unary = self._channel.unary_unary(f"/externalscaler.ExternalScaler/{method}")
        found: bytes = await unary(request, timeout=PATIENCE_S)
        return found

    def stream(self, request: bytes) -> Any:
        method = "/externalscaler.ExternalScaler/StreamIsActive"
        return self._channel.unary_stream(method)(request, timeout=PATIENCE_S)


@asynccontextmanager
async def keda(kafka: FakeKafka, *, sizes: bool = True, calls: int = CALLS) -> AsyncIterator[Keda]:
    """Give a client of a scaler that has passes four times a second, if it `sizes` at all."""
    with reserve_port() as port:
        chosen = ScalerSettings(keda_port=port, keda_address=HOST)
    requested = asyncio.Event()
    first_s = 5.0 if sizes else 0.1
    async with serve_keda(chosen, requested.set, first_s=first_s, calls=calls) as triggers:
        scaler = Scaler(triggers.current, kafka, kafka, 0.25, 0.25)
        work = (must_not_end(scaler.run()),) if sizes else ()
        async with (
            background_tasks(*work),
            grpc.aio.insecure_channel(f"{HOST}:{port}") as channel,
        ):
            yield Keda(channel)


def replicas(number: int) -> bytes:
    """Return a GetMetricsResponse."""
    value = text(1, "binwright-replicas")
    if number:  # proto3 leaves out what is zero
        value += bytes([2 << 3, number]) + bytes([3 << 3 | 1]) + struct.pack("<d", number)
    return text(1, value)


ACTIVE, INACTIVE = b"\x08\x01", b""
SPEC = text(1, text(1, "binwright-replicas") + b"\x10\x01" + b"\x19" + struct.pack("<d", 1.0))


async def test_the_metric_is_the_number_of_replicas_with_a_target_of_one() -> None:
    kafka = FakeKafka(rates={"orders": MANY})
    request = text(1, reference()) + text(2, "binwright-replicas")
    async with keda(kafka) as client:
        assert await client.call("GetMetricSpec", reference()) == SPEC
        assert await client.call("GetMetrics", request) == replicas(3)
        assert await client.call("IsActive", reference()) == ACTIVE


async def test_a_group_without_lag_and_records_is_not_active() -> None:
    kafka = FakeKafka(rates={"orders": [0.0] * 6})
    async with keda(kafka) as client:
        assert await client.call("IsActive", reference()) == INACTIVE
        assert await client.call("GetMetrics", text(1, reference())) == replicas(0)


async def test_a_stream_shows_the_first_record_at_once() -> None:
    kafka = FakeKafka(rates={"orders": [0.0] * 6})
    async with keda(kafka) as client:
        stream = client.stream(reference())
        assert await stream.read() == INACTIVE
        kafka.lags["orders"] = [0, 0, 0, 0, 0, 1]
        assert await stream.read() == ACTIVE
        stream.cancel()


async def test_streams_without_end_are_refused_and_those_there_are_go_on() -> None:
    kafka = FakeKafka(rates={"orders": [0.0] * 6})
    async with keda(kafka, calls=3) as client:
        streams = [client.stream(reference()) for _ in range(3)]
        for stream in streams:
            assert await stream.read() == INACTIVE
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.call("IsActive", reference())
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        kafka.lags["orders"] = [1] * 6
        assert await streams[0].read() == ACTIVE
        for stream in streams:
            stream.cancel()


async def test_a_group_whose_offsets_are_not_known_is_unavailable_with_the_reason() -> None:
    """KEDA then does what the ScaledObject's fallback says."""
    kafka = FakeKafka(rates={"orders": MANY}, faults={"orders": "no right to describe it"})
    async with keda(kafka) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.call("IsActive", reference())

    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert caught.value.details() == "no right to describe it"


async def refusal(kafka: FakeKafka, method: str = "GetMetrics", **metadata: str) -> tuple[Any, str]:
    """Return the status and the sentence with which a call fails."""
    request = reference({**METADATA, **metadata})
    async with keda(kafka) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.call(method, text(1, request) if method == "GetMetrics" else request)
    return caught.value.code(), str(caught.value.details())


async def answer(kafka: FakeKafka, **metadata: str) -> bytes:
    async with keda(kafka) as client:
        return await client.call("GetMetrics", text(1, reference({**METADATA, **metadata})))


async def test_a_newline_of_a_secret_is_no_part_of_a_name() -> None:
    kafka = FakeKafka(rates={"orders": MANY})
    names = {"group": "orders\n", "topics": "orders\n", "recordsPerSecond": "100\n"}
    assert await answer(kafka, **names, startsAt="latest\n", scalerAddress="s") == replicas(3)


async def test_a_topic_that_does_not_exist_is_unavailable_by_its_name() -> None:
    kafka = FakeKafka(rates={"orders": MANY})
    code, details = await refusal(kafka, topics="orders,nosuch")
    assert (code, details) == (grpc.StatusCode.UNAVAILABLE, "topic nosuch does not exist")


async def test_zero_is_not_reported_while_a_partition_is_not_known() -> None:
    kafka = FakeKafka(rates={"orders": [0.0] * 6})
    async with keda(kafka) as client:
        assert await client.call("IsActive", reference()) == INACTIVE
        kafka.rates["orders"][5] = None
        details = ""
        async with asyncio.timeout(PATIENCE_S):
            while not details:
                try:
                    assert await client.call("IsActive", reference()) == INACTIVE
                except grpc.aio.AioRpcError as exc:
                    details = str(exc.details())
    assert details == "1 partitions of the group have no fresh end or rate"


async def test_a_scaler_that_makes_no_pass_is_unavailable() -> None:
    async with keda(FakeKafka(), sizes=False) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.call("GetMetrics", text(1, reference()))

    assert caught.value.details() == "the rates of the group's partitions are not known yet"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"group": "orders"}, "missing metadata: recordsPerSecond"),
        ({**METADATA, "lagThreshold": "5"}, "unknown metadata: lagThreshold; there is burst"),
        ({**METADATA, "slaSeconds": "soon"}, "slaSeconds: Input should be a valid number"),
        ({**METADATA, "topics": "orders;clicks"}, "no topic can have the name 'orders;clicks'"),
        ({**METADATA, "group": "or\x07ders"}, "characters that cannot be shown"),
        ({**METADATA, "offsetResetPolicy": "early"}, "startsAt: "),
        (
            {**METADATA, "offsetResetPolicy": "latest", "startsAt": "earliest"},
            "offsetResetPolicy is latest, and startsAt is earliest",
        ),
    ],
)
async def test_metadata_that_do_not_hold_are_an_invalid_argument(
    metadata: Mapping[str, str], message: str
) -> None:
    async with keda(FakeKafka(), sizes=False) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.call("GetMetricSpec", reference(metadata))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert message in str(caught.value.details())


async def test_changed_metadata_change_the_group() -> None:
    kafka = FakeKafka(rates={"orders": MANY})
    async with keda(kafka) as client:
        assert await client.call("GetMetrics", text(1, reference())) == replicas(3)
        faster = reference({**METADATA, "recordsPerSecond": "1000"})
        async with asyncio.timeout(PATIENCE_S):  # a pass later
            while await client.call("GetMetrics", text(1, faster)) != replicas(1):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.mark.looptime
async def test_a_trigger_that_asks_no_more_is_forgotten() -> None:
    triggers = KedaTriggers(lambda: None, ScalerSettings())
    message = CLASSES["ScaledObjectRef"].FromString(reference())
    triggers.ask(ScaledObjectRef.from_message(message))
    await asyncio.sleep(599)
    assert list(triggers.current()) == ["keda/shop/worker/orders"]
    await asyncio.sleep(2)
    assert not triggers.current()


async def test_an_address_that_cannot_be_opened_is_a_fault_of_the_settings() -> None:
    with reserve_port() as port:
        chosen = ScalerSettings(
            keda_port=port, keda_address="256.0.0.1", keda_allow_any_client=True
        )
        with pytest.raises(SettingsError, match=r"scaler\.keda_port: 256\.0\.0\.1"):
            async with serve_keda(chosen, lambda: None):
                pass


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a certificate for this machine that signs itself, and its key."""
    home = tmp_path_factory.mktemp("certificates")
    subject = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}")
    files = ("-keyout", str(home / "key.pem"), "-out", str(home / "cert.pem"))
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1")
    subprocess.run((*command, *subject, *files), check=True, capture_output=True)
    return home


async def test_a_client_with_the_right_certificate_is_answered_and_another_one_is_not(
    certificates: Path,
) -> None:
    own, key = certificates / "cert.pem", certificates / "key.pem"
    with reserve_port() as port:
        chosen = ScalerSettings(
            keda_port=port,
            keda_address=HOST,
            keda_certificate_file=own,
            keda_key_file=key,
            keda_client_ca_file=own,
        )
    known = grpc.ssl_channel_credentials(own.read_bytes(), key.read_bytes(), own.read_bytes())
    unknown = grpc.ssl_channel_credentials(own.read_bytes())
    async with serve_keda(chosen, lambda: None):
        async with grpc.aio.secure_channel(f"{HOST}:{port}", known) as channel:
            assert await Keda(channel).call("GetMetricSpec", reference()) == SPEC
        async with grpc.aio.secure_channel(f"{HOST}:{port}", unknown) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await Keda(channel).call("GetMetricSpec", reference())

    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_certificate_that_is_renewed_serves_the_next_connection(tmp_path: Path) -> None:
    before, after = trustme.CA(), trustme.CA()
    files = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem"

    def issue(ca: trustme.CA) -> None:
        issued = ca.issue_cert(HOST)
        issued.cert_chain_pems[0].write_to_path(files[0])
        issued.private_key_pem.write_to_path(files[1])
        ca.cert_pem.write_to_path(files[2])

    def client(ca: trustme.CA) -> Any:
        own, root = ca.issue_cert("keda.example"), ca.cert_pem.bytes()
        key, chain = own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes()
        return grpc.ssl_channel_credentials(root, key, chain)

    issue(before)
    with reserve_port() as port:
        chosen = ScalerSettings(
            keda_port=port,
            keda_address=HOST,
            keda_certificate_file=files[0],
            keda_key_file=files[1],
            keda_client_ca_file=files[2],
        )
    async with serve_keda(chosen, lambda: None):
        async with grpc.aio.secure_channel(f"{HOST}:{port}", client(before)) as channel:
            assert await Keda(channel).call("GetMetricSpec", reference()) == SPEC
        issue(after)
        async with grpc.aio.secure_channel(f"{HOST}:{port}", client(after)) as channel:
            assert await Keda(channel).call("GetMetricSpec", reference()) == SPEC
        async with grpc.aio.secure_channel(f"{HOST}:{port}", client(before)) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await Keda(channel).call("GetMetricSpec", reference())


def asked(triggers: KedaTriggers, name: str, group: str = "orders", namespace: str = "shop") -> str:
    """Ask as a ScaledObject does; return why it is refused, or nothing."""
    metadata = {"group": group, "recordsPerSecond": "1"}
    try:
        triggers.ask(ScaledObjectRef(name, namespace, metadata))
    except SettingsError as exc:
        return str(exc)
    return ""


async def test_a_namespace_has_so_many_triggers_and_no_more() -> None:
    """Each is a group that every pass asks the brokers about."""
    triggers = KedaTriggers(lambda: None, ScalerSettings(keda_triggers_per_namespace=3))
    refused = [asked(triggers, str(number)) for number in range(50_000)]
    assert not any(refused[:3])
    assert set(refused[3:]) == {
        "the namespace shop has 3 triggers already (scaler.keda_triggers_per_namespace)"
    }
    assert len(triggers.current()) == 3
    assert not asked(triggers, "0"), "the same again"
    assert not asked(triggers, "0", namespace="other")


async def test_all_namespaces_together_have_so_many_triggers_and_no_more() -> None:
    triggers = KedaTriggers(lambda: None, ScalerSettings())
    refused = [asked(triggers, "one", namespace=str(number)) for number in range(TRIGGERS + 1)]
    assert refused[-1] == f"there are {TRIGGERS} triggers already"
    assert len(triggers.current()) == TRIGGERS


async def test_a_namespace_asks_for_its_own_groups_only() -> None:
    """Else it learns the lag of any."""
    mine = ScalerSettings(keda_groups={"shop": ("shop-.*",)})
    triggers = KedaTriggers(lambda: None, mine)
    assert not asked(triggers, "worker", "shop-orders")
    reason = "group shop: not one of the namespace shop (scaler.keda_groups)"
    assert asked(triggers, "worker", "shop") == reason
    assert "not one of the namespace other" in asked(triggers, "w", "shop-orders", "other")


def test_a_port_for_any_client_has_to_be_wanted() -> None:
    with pytest.raises(ValueError, match="where anybody may ask: give keda_client_ca_file"):
        ScalerSettings(keda_port=6000, keda_address=ELSEWHERE)
    ScalerSettings(keda_port=6000, keda_address=ELSEWHERE, keda_allow_any_client=True)
    ScalerSettings(keda_address=ELSEWHERE)


async def test_a_certificate_that_is_not_there_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    chosen = ScalerSettings(keda_port=6000, keda_certificate_file=missing, keda_key_file=missing)
    with pytest.raises(SettingsError, match=r"scaler\.keda_\*_file: .*missing\.pem"):
        async with serve_keda(chosen, lambda: None):
            pass
