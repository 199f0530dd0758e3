"""Answers KEDA: whether a group is to be active, and how many replicas it needs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import grpc

from binwright.protocol.errors import SettingsError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.backoff import until_set
from binwright.runtime.certificates import CERTIFICATES_RENEWED, CERTIFICATES_UNREADABLE
from binwright.runtime.logs import log
from binwright.scaler.keda.messages import CLASSES, SERVICE, ScaledObjectRef
from binwright.scaler.keda.triggers import TRIGGERS, KedaTrigger, KedaTriggers
from binwright.scaler.settings import ScalerSettings

KEDA_SERVED = LogEvent.info("keda.served", "The external scaler for KEDA is served.")

METRIC = "binwright-replicas"
TARGET_SIZE = 1  # of the metric for each replica: its value is the number of replicas
FIRST_S = 5.0
"""How long the first answer about a group may wait for the first pass over it."""
REPEAT_S = 30.0
"""Interval at which a stream repeats its answer, to notice that nobody reads it any more."""
GRACE_S = 2.0
CALLS = 2 * TRIGGERS
"""Most calls at once: of each trigger a stream that stays, and another one."""


class ExternalScaler:
    """The methods of KEDA's service; each gets a message and the context of the call."""

    def __init__(self, triggers: KedaTriggers, first_s: float = FIRST_S) -> None:
        """Answer by these triggers; wait `first_s` at most for the first pass over a group."""
        self._triggers, self._first_s = triggers, first_s

    async def is_active(self, request: Any, context: Any) -> Any:
        """Whether the group needs any replica."""
        _, replicas = await self._sized(request, context)
        return CLASSES["IsActiveResponse"](result=replicas > 0)

    async def stream_is_active(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """Send whether the group needs any replica: at once, when that changes, and repeatedly."""
        trigger, replicas = await self._sized(request, context)
        while True:
            sent = replicas > 0
            yield CLASSES["IsActiveResponse"](result=sent)
            loop = asyncio.get_running_loop()
            until_s = loop.time() + REPEAT_S
            while loop.time() < until_s:
                await until_set(trigger.changed, until_s - loop.time())
                if not trigger.unknown and (trigger.replicas > 0) != sent:
                    break
            trigger, replicas = await self._sized(request, context)

    async def get_metric_spec(self, request: Any, context: Any) -> Any:
        """Return the metric: one for each replica."""
        await self._trigger(request, context)
        spec = CLASSES["MetricSpec"](
            metricName=METRIC, targetSize=TARGET_SIZE, targetSizeFloat=float(TARGET_SIZE)
        )
        return CLASSES["GetMetricSpecResponse"](metricSpecs=[spec])

    async def get_metrics(self, request: Any, context: Any) -> Any:
        """Return how many replicas the group needs."""
        _, replicas = await self._sized(request.scaledObjectRef, context)
        value = CLASSES["MetricValue"](
            metricName=METRIC, metricValue=replicas, metricValueFloat=float(replicas)
        )
        return CLASSES["GetMetricsResponse"](metricValues=[value])

    async def _trigger(self, request: Any, context: Any) -> KedaTrigger:
        try:
            return self._triggers.ask(ScaledObjectRef.from_message(request))
        except SettingsError as exc:
            await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(exc))

    async def _sized(self, request: Any, context: Any) -> tuple[KedaTrigger, int]:
        """Return a trigger and the replicas that its group needs; a fault ends the call.

        KEDA then does what the ScaledObject's `fallback` says.
        """
        trigger = await self._trigger(request, context)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._first_s):
                while trigger.unknown and not trigger.target.problem:
                    await trigger.changed.wait()
        if trigger.unknown:
            await _abort(context, grpc.StatusCode.UNAVAILABLE, trigger.unknown)
        return trigger, trigger.replicas


async def _abort(context: Any, code: Any, text: str) -> NoReturn:
    await context.abort(code, text)
    raise AssertionError("abort raises")


def handlers(scaler: ExternalScaler) -> Any:
    """Return the service's methods as gRPC wants them."""

    def unary(method: Any, request: str) -> Any:
        return grpc.unary_unary_rpc_method_handler(method, CLASSES[request].FromString, _serialized)

    methods = {
        "IsActive": unary(scaler.is_active, "ScaledObjectRef"),
        "GetMetricSpec": unary(scaler.get_metric_spec, "ScaledObjectRef"),
        "GetMetrics": unary(scaler.get_metrics, "GetMetricsRequest"),
        "StreamIsActive": grpc.unary_stream_rpc_method_handler(
            scaler.stream_is_active, CLASSES["ScaledObjectRef"].FromString, _serialized
        ),
    }
    return grpc.method_handlers_generic_handler(SERVICE, methods)


def _serialized(message: Any) -> bytes:
    serialized: bytes = message.SerializeToString()
    return serialized


def _credentials(settings: ScalerSettings) -> Any:
    """Return the server's certificate, and whose clients it takes; None: it has none.

    Raises:
        SettingsError: A file cannot be read.
    """
    if settings.keda_certificate_file is None or settings.keda_key_file is None:
        return None
    files = [settings.keda_key_file, settings.keda_certificate_file]
    if settings.keda_client_ca_file is not None:
        files.append(settings.keda_client_ca_file)
    try:
        renewal = CertificateRenewal(files)
    except OSError as exc:
        raise SettingsError(f"scaler.keda_*_file: {exc}") from exc
    return grpc.dynamic_ssl_server_credentials(
        renewal.latest(), renewal, settings.keda_client_ca_file is not None
    )


class CertificateRenewal:
    """Gives gRPC, for each connection, what the files hold if they have changed."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Read key, certificate, and who signs clients' if given; raise `OSError`."""
        self._files = files
        self._read = [file.read_bytes() for file in files]

    def latest(self) -> Any:
        """Return what was read last, as gRPC wants it."""
        key, certificate, *clients = self._read
        return grpc.ssl_server_certificate_configuration(
            [(key, certificate)], clients[0] if clients else None
        )

    def __call__(self) -> Any:
        """Return it if it has changed, else None; called in a thread of gRPC's.

        A pair of files that do not fit together is refused by gRPC, which keeps the one before.
        """
        try:
            read = [file.read_bytes() for file in self._files]
        except OSError as exc:
            log(CERTIFICATES_UNREADABLE, reason=str(exc))
            return None
        if read == self._read:
            return None
        self._read = read
        log(CERTIFICATES_RENEWED, files=[str(file) for file in self._files])
        return self.latest()


@contextlib.asynccontextmanager
async def serve_keda(
    settings: ScalerSettings,
    request_pass: Callable[[], None],
    *,
    first_s: float = FIRST_S,
    calls: int = CALLS,
) -> AsyncIterator[KedaTriggers]:
    """Serve KEDA while the body runs, and give the groups that it asks for.

    Args:
        settings: Of the port, and of what is asked for.
        request_pass: See `KedaTriggers`.
        first_s: See `ExternalScaler`.
        calls: Most at once; further ones are refused, and KEDA calls again.

    Raises:
        SettingsError: The port cannot be opened.
    """
    triggers = KedaTriggers(request_pass, settings)
    server = grpc.aio.server(maximum_concurrent_rpcs=calls)
    server.add_generic_rpc_handlers((handlers(ExternalScaler(triggers, first_s)),))
    address = f"{settings.keda_address}:{settings.keda_port}"
    try:
        if (credentials := _credentials(settings)) is None:
            server.add_insecure_port(address)
        else:
            server.add_secure_port(address, credentials)
    except RuntimeError as exc:
        raise SettingsError(f"scaler.keda_port: {address} cannot be opened: {exc}") from exc
    await server.start()
    log(KEDA_SERVED, address=settings.keda_address, port=settings.keda_port)
    try:
        yield triggers
    finally:
        await server.stop(GRACE_S)
