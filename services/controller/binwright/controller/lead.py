"""Who should rule is a matter of liveness: the members of one Kafka consumer group decide it.

Whoever owns partition 0 of the metrics topic leads; the others wait. Two that believe to lead do
no harm: the later Claim wins.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from binwright.controller.assignor import CountingSticky
from binwright.controller.steer import Deposed
from binwright.core.errors import WorldError
from binwright.shell.broker import stop_client, translated
from binwright.shell.run import endless, first_cause

log = structlog.get_logger()

SESSION_S = 6.0  # the shortest that brokers allow by default: a dead leader's partition is free
POLL_S = 1.0
RETRY_S, LONGEST_RETRY_S = 1.0, 60.0  # from the end of a reign to the next
STEADY_S = 30.0  # a reign that lasted so long ended for a reason of its own


class _Mandate(ConsumerRebalanceListener):  # type: ignore[misc]
    """Whether partition 0 is ours.

    Whenever anybody joins or leaves, the group takes every partition back and hands them out anew,
    mostly as they were. A reign under way goes on until another was chosen; none begins meanwhile.
    """

    def __init__(self) -> None:
        self.given, self.taken = asyncio.Event(), asyncio.Event()

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        if any(tp.partition == 0 for tp in revoked):
            self.given.clear()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        if any(tp.partition == 0 for tp in assigned):
            self.taken.clear()
            self.given.set()
        else:
            self.given.clear()
            self.taken.set()


async def lead(
    options: dict[str, Any],
    topic: str,
    group: str,
    reign: Callable[[], Awaitable[None]],
    beat: Callable[[str], None] = lambda _: None,
) -> None:
    """Run `reign` whenever this process leads, for ever; end it when another does.

    Args:
        options: Connection settings for aiokafka.
        topic: The metrics topic; whoever owns its partition 0 leads.
        group: The Kafka consumer group of the controllers.
        reign: One reign; it ends by `Deposed`, by a `WorldError`, or by being cancelled.
        beat: Told each time that a loop has gone round.

    Raises:
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    mandate = _Mandate()
    member = AIOKafkaConsumer(
        **options,
        group_id=group,
        session_timeout_ms=int(SESSION_S * 1000),
        heartbeat_interval_ms=int(SESSION_S * 1000 / 4),
        enable_auto_commit=False,
        # Who leads goes on leading when others come. It keeps its memory in the class: one of ours.
        partition_assignment_strategy=[type("Sticky", (CountingSticky,), {})],
    )
    member.subscribe([topic], listener=mandate)
    try:
        with translated(f"joining the controllers' group {group}"):
            await member.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(endless(_poll(member, beat)))
            tasks.create_task(endless(_serve(mandate, reign, lambda: _confirmed(member, topic))))
    finally:
        await stop_client(member)


async def _poll(member: AIOKafkaConsumer, beat: Callable[[str], None]) -> None:
    """Stay a member in good standing; what the topic holds is read elsewhere."""
    while True:
        beat("membership")
        member.pause(*member.assignment())
        with translated("staying in the controllers' group"):
            await member.getmany(timeout_ms=int(POLL_S * 1000))
        await asyncio.sleep(0)  # getmany may return without having waited


async def _confirmed(member: AIOKafkaConsumer, topic: str) -> bool:
    """Whether partition 0 is this member's in the eyes of Kafka: a commit of its offset tells.

    Who slept through its session learns of it by a heartbeat, and that may come late. The commit is
    refused, and aiokafka joins anew.
    """
    with translated("asking whether this controller leads"):
        try:
            async with asyncio.timeout(SESSION_S):
                await member.commit({TopicPartition(topic, 0): 0})
        except (CommitFailedError, IllegalStateError, TimeoutError):
            return False
    return True


async def _serve(
    mandate: _Mandate,
    reign: Callable[[], Awaitable[None]],
    confirmed: Callable[[], Awaitable[bool]],
) -> None:
    pause_s = RETRY_S
    while True:
        log.info("controller.waiting")
        await mandate.given.wait()
        while not await confirmed():
            await asyncio.sleep(RETRY_S)
            await mandate.given.wait()
        log.info("controller.leading")
        began = asyncio.get_running_loop().time()
        ruling = asyncio.ensure_future(reign())
        ended = asyncio.ensure_future(mandate.taken.wait())
        try:
            await asyncio.wait({ruling, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ruling.done():
                _judge(ruling)
                # Two that both hold the mandate would depose each other again and again: the one
                # that waits longer lets the other act. Which one, the jitter decides.
                steady = asyncio.get_running_loop().time() - began > STEADY_S
                pause_s = RETRY_S if steady else min(2 * pause_s, LONGEST_RETRY_S)
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            else:
                pause_s = RETRY_S
                log.info("controller.deposed", reason="the controllers' group chose another")
        finally:
            for task in (ruling, ended):
                task.cancel()
            await asyncio.gather(ruling, ended, return_exceptions=True)


def _judge(ruling: asyncio.Future[None]) -> None:
    """Tell why a reign ended; raise what is our own fault."""
    if ruling.cancelled():  # by none of us
        log.warning("controller.failed", reason="cancelled from within")
        return
    error = ruling.exception()
    match first_cause(error) if error else None:
        case None:
            raise RuntimeError("a reign must not end by itself")
        case Deposed() as cause:
            log.info("controller.deposed", reason=str(cause))
        case WorldError() as cause:
            log.warning("controller.failed", reason=str(cause))
        case cause:
            raise cause
