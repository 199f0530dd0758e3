"""Write records to real topics at the rates of a stream.

librdkafka sends in its own threads; a thread of this module enqueues the records that are due,
forty times a second. Records go to the partition of the stream, whatever their key. Nothing is
compressed, so a partition grows at the stream's rate plus Kafka's framing: 2 to 8 % for records of
1 kB.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from binwright.kafka.client import check_advertised, unreachable_error
from binwright.kafka.credentials import sasl_password
from binwright.kafka.tokens import token_source
from binwright.protocol.errors import BrokerUnavailable, SettingsError, StreamError, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.secret_files import secret_at_start
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load_pacing import Pacer, Pacing
from binwright.streams.streams import Row, Stream

TICK_S = 0.025
POLL_S = 1.0  # longest call of librdkafka: a halt waits for it
MARGIN_S = 5.0  # beyond the time after which librdkafka fails a record
QUEUE_KB = 65_536

PROGRESS_S = 1.0

OnRow = Callable[[int, Row], None]
OnProgress = Callable[["LoadProgress"], None]
MakeRecord = Callable[[TopicPartition, int], tuple[bytes, bytes | None]]
"""Returns key and value of a partition's next record, by the time, ms since 1970."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is."""

    elapsed_s: float
    ends_s: float  # inf: when it is ended
    records: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The records sent to one partition."""

    records: int
    bytes: int  # keys and values
    due_bytes: int  # by the stream's rates


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """The result of a load; every record in it is confirmed by all replicas."""

    partitions: Mapping[TopicPartition, Sent]  # all of the stream, sorted
    rows: int  # that were started
    elapsed_s: float
    shed_bytes: int  # due, but not sent: the broker or this machine was too slow


def kafka_options(kafka: KafkaSettings) -> dict[str, object]:
    """Return librdkafka's options for a connection to this Kafka.

    Raises:
        SettingsError: A password or a token cannot be read, or librdkafka knows no GSSAPI.
    """
    if kafka.sasl_mechanism == "GSSAPI":
        raise SettingsError(
            "kafka.sasl_mechanism: a load cannot use GSSAPI, because the client that sends it "
            "(librdkafka) comes without Kerberos: name a listener with another mechanism for it"
        )
    options: dict[str, object] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": kafka.security_protocol,
        "socket.timeout.ms": round(kafka.request_timeout_s * 1000),
        "ssl.ca.location": _path(kafka.ssl_ca_file),
        "ssl.certificate.location": _path(kafka.ssl_certificate_file),
        "ssl.key.location": _path(kafka.ssl_key_file or kafka.ssl_certificate_file),
    }
    if kafka.ssl_key_password_file:
        file = kafka.ssl_key_password_file
        options["ssl.key.password"] = secret_at_start(file, "kafka.ssl_key_password_file")
    if kafka.security_protocol.startswith("SASL"):
        password, tokens = sasl_password(kafka), token_source(kafka)
        options |= {
            "sasl.mechanism": kafka.sasl_mechanism,
            "oauth_cb": tokens and tokens.librdkafka,
            "sasl.username": kafka.sasl_username,
            "sasl.password": password() if callable(password) else password,
        }
    return {name: value for name, value in options.items() if value is not None}


def _path(path: object | None) -> str | None:
    return None if path is None else str(path)


async def run_load(
    stream: Stream,
    kafka: KafkaSettings,
    load: Pacing,
    *,
    on_row: OnRow | None = None,
    on_progress: OnProgress | None = None,
    stop: asyncio.Event | None = None,
    make: MakeRecord | None = None,
) -> LoadResult:
    """Write records until `stream` or `load.duration_s` ends, `stop` is set, or it is cancelled.

    It ends once all enqueued records are confirmed or have failed: at most a few seconds more than
    `load.delivery_s`, and a few seconds when it is cancelled.

    Args:
        stream: At least one measurement.
        kafka: Of the topics, which must exist with all partitions of the stream.
        load: How rates in per cent become records.
        on_row: Called on the event loop when a measurement begins, with its number from 0 (which
            continues when the stream repeats).
        on_progress: Called on the event loop once a second.
        stop: Ends the load early.
        make: Makes the records, of about `load.record_bytes` each, in a thread; None: they are
            `SampleRecords`.

    Raises:
        StreamError: The stream is empty, or the records are too small for their fields.
        SettingsError: librdkafka refuses the settings.
        TopicMissing: A topic or partition does not exist.
        BrokerUnavailable: The broker does not answer, or did not confirm every record.
    """
    if not stream:
        raise StreamError("the stream is empty: not one measurement")
    await check_advertised(kafka)  # librdkafka would go on trying, without a word
    loop = asyncio.get_running_loop()

    def begin(number: int, row: Row) -> None:
        if on_row:
            loop.call_soon_threadsafe(on_row, number, row)

    def report(progress: LoadProgress) -> None:
        if on_progress:
            loop.call_soon_threadsafe(on_progress, progress)

    producer = _LoadProducer(stream, kafka, load, begin, report, make)
    work = asyncio.create_task(asyncio.to_thread(producer.run))
    watch = asyncio.create_task(stop.wait()) if stop else None
    if watch:
        watch.add_done_callback(lambda _: producer.halt())
    try:
        return await asyncio.shield(work)
    except _Unanswered as exc:  # librdkafka does not say why
        raise await unreachable_error(kafka, exc) from exc
    finally:
        producer.halt()
        if watch:
            watch.cancel()
        if not work.done():  # cancelled: the thread ends in bounded time
            producer.hurry()
            await asyncio.wait({work})
            work.exception()  # retrieved, or asyncio logs it


class _Unanswered(BrokerUnavailable):
    """No broker told which topics there are, or there is no token for any."""


class _LoadProducer:
    """A producer in its own thread: checks the topics, sends, and waits for confirmations."""

    def __init__(  # noqa: PLR0917 - what a caller of `run_load` gives
        self,
        stream: Stream,
        kafka: KafkaSettings,
        load: Pacing,
        begin: OnRow,
        report: OnProgress,
        make: MakeRecord | None,
    ) -> None:
        self._kafka, self._load, self._begin, self._report = kafka, load, begin, report
        self._pacer = Pacer(stream, load)
        self._partitions = list(self._pacer.due_bytes)
        samples = SampleRecords(load.record_bytes)
        self._make = make or (lambda _, now_ms: samples.make(now_ms))
        self._halted = threading.Event()
        self._enqueued = Counter[TopicPartition]()
        self._failed = 0
        self._reason = ""
        self._confirm_s = load.delivery_s + MARGIN_S

    def halt(self) -> None:
        """Send no more records. Thread-safe."""
        self._halted.set()

    def hurry(self) -> None:
        """Wait only `MARGIN_S` for confirmations. Thread-safe."""
        self._confirm_s = MARGIN_S
        self._halted.set()

    def run(self) -> LoadResult:
        """See `run_load`."""
        producer = self._open()
        self._await_topics(producer)
        started = time.monotonic()
        try:
            rows = self._send(producer, started)
        finally:
            self._drain(producer)
        if self._failed:
            raise BrokerUnavailable(
                f"{self._failed} of {self._enqueued.total()} records were not confirmed; "
                f"the first: {self._reason}"
            )
        return LoadResult(
            partitions={partition: self._sent(partition) for partition in self._partitions},
            rows=rows,
            elapsed_s=time.monotonic() - started,
            shed_bytes=round(self._pacer.shed_bytes),
        )

    def _sent(self, partition: TopicPartition) -> Sent:
        records = self._enqueued[partition]
        due = round(self._pacer.due_bytes[partition])
        return Sent(records=records, bytes=records * self._load.record_bytes, due_bytes=due)

    def _open(self) -> Producer:
        options: dict[str, object] = {
            **kafka_options(self._kafka),
            "client.id": "binwright-load",
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": round(self._load.delivery_s * 1000),
            "linger.ms": 5,
            "compression.type": "none",
            "queue.buffering.max.kbytes": QUEUE_KB,
            "delivery.report.only.error": True,
            "log_level": 2,  # errors arrive by callback
            "on_delivery": self._delivered,
        }
        try:
            return Producer(options)
        except KafkaException as exc:
            if exc.args[0].code() == KafkaError.SASL_AUTHENTICATION_FAILED:
                raise _Unanswered(f"no token: {exc.args[0]}") from exc
            raise SettingsError(f"librdkafka refuses Kafka's settings: {exc.args[0]}") from exc

    def _await_topics(self, producer: Producer) -> None:
        deadline = time.monotonic() + self._kafka.request_timeout_s
        missing: list[TopicPartition] = []
        why = ""
        while not self._halted.is_set():
            try:
                topics = producer.list_topics(timeout=POLL_S).topics
            except KafkaException as exc:
                why = str(exc.args[0])
            else:
                missing = [
                    p
                    for p in self._partitions
                    if p.topic not in topics or p.partition not in topics[p.topic].partitions
                ]
                if not missing:
                    return
            if time.monotonic() >= deadline:
                break
            self._halted.wait(TICK_S)
        else:
            return  # ended before a record was sent
        if missing:
            raise TopicMissing(f"there is no {', '.join(map(str, missing))}: create it first")
        raise _Unanswered(f"{self._kafka.bootstrap_servers} does not answer: {why}")

    def _send(self, producer: Producer, started: float) -> int:
        rows, reported_at = 0, 0.0
        while not self._halted.is_set():
            now = time.monotonic() - started
            self._pacer.advance(now)
            if self._pacer.row >= rows:
                rows = self._pacer.row + 1
                self._begin(self._pacer.row, self._pacer.measurement)
            self._enqueue(producer)
            producer.poll(0)
            if now - reported_at >= PROGRESS_S:
                reported_at, records = now, self._enqueued.total()
                sent = records * self._load.record_bytes
                self._report(LoadProgress(now, self._pacer.ends_s, records, sent))
            if now >= self._pacer.ends_s:
                break
            self._halted.wait(max(0.0, TICK_S - (time.monotonic() - started - now)))
        return rows

    def _enqueue(self, producer: Producer) -> None:
        now_ms = wall_ms()
        for partition, number in self._pacer.due().items():
            for _ in range(number):
                key, value = self._make(partition, now_ms)
                try:
                    producer.produce(partition.topic, value, key, partition.partition)
                except BufferError:
                    return  # the queue is full: the records stay due
                except KafkaException as exc:
                    raise BrokerUnavailable(f"{partition}: {exc.args[0]}") from exc
                self._pacer.mark_sent(partition, 1)
                self._enqueued[partition] += 1

    def _drain(self, producer: Producer) -> None:
        began = time.monotonic()
        while producer.flush(POLL_S):
            if time.monotonic() - began >= self._confirm_s:
                producer.purge()
                producer.flush(MARGIN_S)
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed += 1
            partition = TopicPartition(message.topic(), message.partition())
            self._reason = self._reason or f"{partition}: {error.str()}"


MIN_RECORD_BYTES = 200
"""Enough for the fields with the longest number in each."""

_NOISE_BYTES = 1 << 20  # longer than the window of compression codecs
_STRIDE = 7_919  # a prime: consecutive records share no noise


class SampleRecords:
    """An endless sequence of keys and JSON values, numbered from 0.

    Key and value have `record_bytes` together. Half of each byte is random, so compression saves at
    most about a half.
    """

    def __init__(self, record_bytes: int, seed: int = 0) -> None:
        if record_bytes < MIN_RECORD_BYTES:
            raise StreamError(
                f"record_bytes must be at least {MIN_RECORD_BYTES}, got {record_bytes}"
            )
        random = Random(seed)
        self._bytes = record_bytes
        self._noise = random.randbytes((_NOISE_BYTES + record_bytes) // 2).hex().encode()
        self._keys = [b"customer-%d" % number for number in range(1_000)]
        self._cents = [random.randrange(100, 100_000) for _ in range(1_009)]
        self._number = 0

    def make(self, now_ms: int) -> tuple[bytes, bytes]:
        """Return the next key and value; `now_ms` is the wall-clock time in it."""
        number, self._number = self._number, self._number + 1
        at = number * _STRIDE
        key = self._keys[at % len(self._keys)]
        units, cents = divmod(self._cents[number % len(self._cents)], 100)
        head = b'{"id":%d,"ts":%d,"customer":"%b","amount":%d.%02d,"currency":"EUR","note":"' % (
            number,
            now_ms,
            key,
            units,
            cents,
        )
        room = self._bytes - len(key) - len(head) - len(b'"}')
        at %= _NOISE_BYTES
        return key, b'%b%b"}' % (head, self._noise[at : at + room])
