"""Elects the leader: the owner of partition 0 of the metrics topic in one Kafka consumer group.

The other members stand by. The election is only for liveness: two controllers that both believe to
lead do no harm, because the later Claim wins.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, for_code
from aiokafka.protocol.admin import DescribeGroupsRequest

from binwright.kafka.client import ClusterClient, client_options, stop_client, translate_errors
from binwright.kafka.generation_sticky import GenerationStickyAssignor
from binwright.kafka.group_requests import find_coordinator
from binwright.protocol.errors import BrokerUnavailable, ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.health import Health
from binwright.runtime.logs import log
from binwright.runtime.run import must_not_end, root_cause
from binwright.runtime.settings.kafka import KafkaSettings

CONTROLLER_WAITING = LogEvent.info("controller.waiting", "This controller is a standby.")
CONTROLLER_LEADING = LogEvent.info("controller.leading", "This controller leads from now on.")
CONTROLLER_STEPPED_DOWN = LogEvent.info(
    "controller.stepped_down", "This controller no longer leads; another one does."
)
CONTROLLER_FAILED = LogEvent.warning(
    "controller.failed", "Leading ended with an error; this controller tries again after a pause."
)

SESSION_S = 6.0  # the shortest that brokers allow by default: how long a dead leader is waited for
POLL_S = 1.0
RETRY_S, LONGEST_RETRY_S = 1.0, 60.0  # from the end of one leadership to the next attempt
STEADY_S = 30.0  # the end of a leadership that lasted so long does not count as a failed attempt


class LeadershipLost(Exception):
    """Another one leads: this leadership is over."""


class Lease(ConsumerRebalanceListener):  # type: ignore[misc]
    """Whether this member owns partition 0.

    A rebalance revokes all partitions and assigns them again, mostly as before. A leadership that
    has begun goes on until partition 0 is assigned to another member (`lost`); none begins while
    the rebalance lasts (`acquired` is clear).
    """

    def __init__(self) -> None:
        self.acquired, self.lost = asyncio.Event(), asyncio.Event()

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Fit `ConsumerRebalanceListener`."""
        if any(tp.partition == 0 for tp in revoked):
            self.acquired.clear()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Fit `ConsumerRebalanceListener`."""
        if any(tp.partition == 0 for tp in assigned):
            self.lost.clear()
            self.acquired.set()
        else:
            self.acquired.clear()
            self.lost.set()


async def lead_in_turn(
    kafka: KafkaSettings,
    health: Health,
    topic: str,
    group: str,
    lead: Callable[[], Awaitable[None]],
) -> None:
    """Run `run_election` as all that a service does; it is ready when it is a member of `group`.

    Raises:
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    health.ready = lambda: "" if health.has_run("membership") else f"has not joined group {group}"
    await run_election(client_options(kafka), topic, group, lead, health.beat)


async def run_election(
    options: dict[str, Any],
    topic: str,
    group: str,
    lead: Callable[[], Awaitable[None]],
    beat: Callable[[str], None] = lambda _: None,
) -> None:
    """Run `lead` whenever this process is the leader, for ever; cancel it when another one is.

    Args:
        options: Connection settings for aiokafka.
        topic: The metrics topic; the owner of its partition 0 leads.
        group: The Kafka consumer group of the controllers.
        lead: One leadership; ends by `LeadershipLost`, by an `ExternalError`, or by cancellation.
        beat: Called with the loop's name at each round of a loop, for the health check.

    Raises:
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    lease = Lease()
    member = AIOKafkaConsumer(
        **options,
        group_id=group,
        session_timeout_ms=int(SESSION_S * 1000),
        heartbeat_interval_ms=int(SESSION_S * 1000 / 4),
        enable_auto_commit=False,
        # Sticky: the leader goes on leading when members join. The assignor keeps its state in its
        # class, so each member has a class of its own.
        partition_assignment_strategy=[type("Sticky", (GenerationStickyAssignor,), {})],
    )
    member.subscribe([topic], listener=lease)
    try:
        with translate_errors(f"joining the controllers' group {group}"):
            await member.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(must_not_end(_stay_member(member, beat)))
            tasks.create_task(
                must_not_end(lead_while_leased(lease, lead, lambda: _confirmed(member, topic)))
            )
    finally:
        await stop_client(member)


async def election_members(cluster: ClusterClient, group: str) -> Sequence[str]:
    """Return the hosts of the processes that lead or stand by, one for each.

    Args:
        cluster: A client of the cluster.
        group: The Kafka consumer group of the controllers.

    Raises:
        BrokerUnavailable: No broker answers, or the group's coordinator does not know it yet.
    """
    coordinator = await find_coordinator(group, cluster.ask_any)
    response = await cluster.send_request(coordinator.broker, DescribeGroupsRequest([group]))
    ((code, _, _, _, _, members, *_),) = response.groups
    if code or coordinator.error_code:
        reason = for_code(code or coordinator.error_code).__name__
        raise BrokerUnavailable(f"asking who leads group {group}: {reason}")
    return [member[2].lstrip("/") for member in members]


async def _stay_member(member: AIOKafkaConsumer, beat: Callable[[str], None]) -> None:
    """Poll, as the group requires; with all partitions paused, since `Measurements` reads them."""
    while True:
        beat("membership")
        member.pause(*member.assignment())
        with translate_errors("staying in the controllers' group"):
            await member.getmany(timeout_ms=int(POLL_S * 1000))
        await asyncio.sleep(0)  # getmany may return without having waited


async def _confirmed(member: AIOKafkaConsumer, topic: str) -> bool:
    """Whether Kafka, too, takes this member for the owner of partition 0: it accepts a commit.

    A member whose process was suspended for longer than its session learns that only from a later
    heartbeat. Its commit is refused at once, and aiokafka joins the group again.
    """
    with translate_errors("asking whether this controller leads"):
        try:
            async with asyncio.timeout(SESSION_S):
                await member.commit({TopicPartition(topic, 0): 0})
        except (CommitFailedError, IllegalStateError, TimeoutError):
            return False
    return True


async def lead_while_leased(
    lease: Lease,
    lead: Callable[[], Awaitable[None]],
    confirmed: Callable[[], Awaitable[bool]],
) -> None:
    """Run `lead` while the lease is held and `confirmed`, for ever; after failures with pauses."""
    pause_s = RETRY_S
    while True:
        log(CONTROLLER_WAITING)
        await lease.acquired.wait()
        while not await confirmed():
            await asyncio.sleep(RETRY_S)
            await lease.acquired.wait()
        log(CONTROLLER_LEADING)
        began = asyncio.get_running_loop().time()
        leading = asyncio.ensure_future(lead())
        lost = asyncio.ensure_future(lease.lost.wait())
        try:
            await asyncio.wait({leading, lost}, return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                _log_end(leading)
                # Two controllers that both hold the lease would make each other step down again and
                # again. The jitter decides which of them waits longer and lets the other one lead.
                steady = asyncio.get_running_loop().time() - began > STEADY_S
                pause_s = RETRY_S if steady else min(2 * pause_s, LONGEST_RETRY_S)
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            else:
                pause_s = RETRY_S
                log(CONTROLLER_STEPPED_DOWN, reason="the controllers' group chose another")
        finally:
            for task in (leading, lost):
                task.cancel()
            await asyncio.gather(leading, lost, return_exceptions=True)


def _log_end(leading: asyncio.Future[None]) -> None:
    """Log why a leadership ended; raise an error that is neither expected nor external."""
    if leading.cancelled():  # this module did not cancel it
        log(CONTROLLER_FAILED, reason="cancelled from within")
        return
    error = leading.exception()
    match root_cause(error) if error else None:
        case None:
            raise RuntimeError("a leadership must not end by itself")
        case LeadershipLost() as cause:
            log(CONTROLLER_STEPPED_DOWN, reason=str(cause))
        case ExternalError() as cause:
            log(CONTROLLER_FAILED, reason=str(cause))
        case cause:
            raise cause
