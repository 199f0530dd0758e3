"""One leadership: feeds events to the pure state machine and carries out its actions.

The state changes in `_feed` only, between awaits. Actions are carried out in the machine's order:
messages by one task for each partition, fleet actions by other tasks. So neither a slow
pod nor messages to other slots delay a command, and a fleet action that fails delays no other.
"""

import asyncio
from collections.abc import Callable, Collection
from math import inf
from uuid import uuid4

from binwright.controller.connection import ConnectionCheck
from binwright.controller.decide.events import (
    Action,
    Broadcast,
    Destroy,
    Disrupted,
    Event,
    Packed,
    ProcessEnded,
    Publish,
    Reconcile,
    Renew,
    Send,
    StepDown,
    Tick,
)
from binwright.controller.decide.machine import begin, transition
from binwright.controller.decide.states import State, Synchronize
from binwright.controller.decide.topic_limits import TopicShare
from binwright.controller.group_context import GroupContext
from binwright.controller.needs import publish_needs
from binwright.controller.orders_topic import open_orders
from binwright.controller.plan_traces import PlanTraces
from binwright.fleets.reconcile import FLEET_FAILED
from binwright.group.fold import Measured, RecordRead
from binwright.group.plans import Pack
from binwright.kafka.control_records import (
    COMMANDS_CONFIG,
    CONTROLLER_PARTITION,
    LANDING_CONFIG,
    LANDING_PARTITIONS,
    METADATA_CONFIG,
    ORDERS_CONFIG,
    ORDERS_PARTITION,
    messages,
)
from binwright.kafka.election import LeadershipLost
from binwright.kafka.metrics_topic import Measurements
from binwright.kafka.own_topics import ensure_own
from binwright.kafka.publishing import QueuedPublisher
from binwright.packing.catalogue import algorithm
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.metadata_topic import POLICY, UNCLEAN, refusal, weaknesses
from binwright.protocol.model import Assignment, Slot
from binwright.protocol.orders import Approved, decode_order
from binwright.protocol.ports.fleet import Fleet, Process
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.health import Health
from binwright.runtime.logs import log
from binwright.runtime.run import must_not_end, ungrouped

STATE_CHANGED = LogEvent.info("state.changed", "The controller's state machine changed its state.")
COMMAND_SENT = LogEvent.info("command.sent", "The controller sent a command to a consumer.")
TOPIC_UNSAFE = LogEvent.warning(
    "topic.unsafe", "The metadata topic is configured so that a failed broker may lose records."
)

TICK_S = 1.0
RETRY_S, LONGEST_RETRY_S = 1.0, 10.0  # of a fleet action that failed
INLINE_PARTITIONS = 2_000  # more are packed in a thread, so that the event loop is not blocked


class Leadership:
    """One leadership, from its Claim to the Claim of another controller."""

    def __init__(  # noqa: PLR0917 - what surrounds a leadership
        self,
        bus: ControlTopics,
        fleet: Fleet,
        context: GroupContext,
        measurements: Measurements,
        observe: Callable[[Action], None] = lambda _: None,
        health: Health | None = None,
        share: TopicShare | None = None,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        """Lead the group of `context`; `observe` is called with each action of the machine.

        `/live` of `health` fails when this leadership's loops do not go round. `share` is what the
        group may read of its topics; None: all. `now_ms` is the wall clock, by which orders end.
        """
        self._observe, self._measurements, self._share = observe, measurements, share
        self._now_ms = now_ms
        self._health = health or Health(inf)
        self._bus, self._fleet, self._context = bus, fleet, context
        self._publisher = QueuedPublisher(bus, context.metadata_topic)
        self._commands = QueuedPublisher(bus, context.commands_topic)
        self._orders = QueuedPublisher(bus, context.orders_topic)
        self._actions: asyncio.Queue[Pack | StepDown] = asyncio.Queue()
        self._fleet_actions: asyncio.Queue[Reconcile | Destroy] = asyncio.Queue()
        self._desired, self._desired_changed = Reconcile(frozenset()), asyncio.Event()
        self._check_ends = asyncio.Event()  # set by the fleet, and at each tick
        self._ready_since: dict[tuple[Slot, int | None], float] = {}
        self._state, self._first_actions = begin(context.config, str(uuid4()), loop_s())

    @property
    def state(self) -> State:
        """Return the machine's state."""
        return self._state

    def approve(self, plan: int, by: str) -> None:
        """Publish that a person approves this plan; the machine checks it when the record is read.

        Args:
            plan: The proposal's number.
            by: The person, or the object that holds the approval, for the log.
        """
        self._orders.send(ORDERS_PARTITION, Approved(plan=plan, by=by))

    async def lead(self) -> None:
        """Publish a Claim, synchronize, and lead until a later Claim is read.

        Raises:
            LeadershipLost: A later Claim of another controller was read.
            UserError: A topic of the group is configured so that it would lose records, or is
                another's.
            ExternalError: Kafka could not be reached at the start.
        """
        metadata = self._context.metadata_topic
        for topic, config in (
            (metadata, METADATA_CONFIG),
            (self._context.commands_topic, COMMANDS_CONFIG),
            (self._context.orders_topic, ORDERS_CONFIG),
        ):
            await ensure_own(self._bus, topic, 1, config)
            await check_compacted(self._bus, topic)
        landing = self._context.landing_topic
        await ensure_own(self._bus, landing, LANDING_PARTITIONS, LANDING_CONFIG)
        async with open_orders(self._bus, metadata, self._context.orders_topic) as (
            ordered,
            standing,
        ):
            for record, message in standing:  # before any plan of this leader
                self._feed(RecordRead(loop_s(), record.offset, message))
            await self._lead(ordered)

    async def _lead(self, ordered: Reader) -> None:
        history = await self._bus.end(self._context.metadata_topic, CONTROLLER_PARTITION)
        reader = await self._bus.reader(self._context.metadata_topic, CONTROLLER_PARTITION, 0)
        connection = ConnectionCheck(self._bus, self._context.metadata_topic, reader)
        self._dispatch(self._first_actions)
        self._fleet.watch(self._check_ends.set)
        try:
            with ungrouped(LeadershipLost):
                async with asyncio.TaskGroup() as tasks:
                    for work in (
                        self._read_records(reader, history),
                        self._read_orders(ordered),
                        self._read_measurements(),
                        self._tick(connection),
                        self._find_ended(),
                        connection.run(),
                        self._carry_out(),
                        self._publisher.run(),
                        self._commands.run(),
                        self._orders.run(),
                        self._carry_out_fleet_actions(),
                    ):
                        tasks.create_task(must_not_end(work))
                    if (topics := self._context.config.topics) is not None:
                        needs = publish_needs(
                            self._bus, self._context.needs_topic, self._context.group, topics
                        )
                        tasks.create_task(must_not_end(needs))
        finally:
            await reader.close()

    # --- events in -------------------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        before = self._state
        self._state, actions = transition(before, event)
        self._dispatch(actions)
        if type(before) is not type(self._state):
            log(
                STATE_CHANGED,
                state=type(self._state).__name__.lower(),
                was=type(before).__name__.lower(),
            )

    def _dispatch(self, actions: Collection[Action]) -> None:
        for action in actions:
            self._observe(action)
            match action:
                case Log(event=event, facts=facts):
                    log(event, **facts)
                case Reconcile() | Destroy():
                    self._fleet_actions.put_nowait(action)
                case Renew(slots=slots):
                    self._fleet.renew(slots)
                case Publish(message=message):
                    self._publisher.send(CONTROLLER_PARTITION, message)
                case Send(slot=slot, message=message):
                    log(COMMAND_SENT, kind=message.kind, slot=slot)
                    self._commands.send(slot, message)
                case Broadcast(message=message):
                    self._commands.send_to_all(message)
                case Pack() | StepDown():
                    self._actions.put_nowait(action)

    async def _read_records(self, reader: Reader, history_end: int) -> None:
        traces = PlanTraces(self._context.group, self._context.trace)
        with self._health.progress(f"records of {self._context.group}") as beat:
            async for record, message in messages(reader, decode_inbound, history_end, beat):
                self._feed(RecordRead(loop_s(), record.offset, message))
                if record.offset >= history_end:
                    traces.apply(record.timestamp_ms, message)

    async def _read_orders(self, reader: Reader) -> None:
        with self._health.progress(f"orders of {self._context.group}") as beat:
            async for record, message in messages(reader, decode_order, beat=beat):
                self._feed(RecordRead(loop_s(), record.offset, message))

    async def _read_measurements(self) -> None:
        with self._measurements.subscribe(self._context.config.topics) as measurements:
            while True:
                measurement = await measurements.get()
                if self._share is not None:
                    if isinstance(self._state, Synchronize):
                        continue  # what the group reads already, comes before what is new
                    measurement = self._share.limited(measurement, self._state.group)
                self._feed(Measured(loop_s(), measurement))

    async def _tick(self, connection: ConnectionCheck) -> None:
        with self._health.progress(f"ticks of {self._context.group}") as beat:
            while True:
                await asyncio.sleep(TICK_S)
                self._check_ends.set()
                if (
                    disruptions := self._fleet.disruptions()
                ) != self._state.group.fleet.disruptions:
                    self._feed(Disrupted(loop_s(), disruptions))
                # Without a connection a consumer's silence proves nothing.
                if connection.is_connected():
                    self._feed(Tick(loop_s(), self._now_ms()))
                    self._report_ready()
                beat()

    def _report_ready(self) -> None:
        """Report to the fleet which slots are ready, and since when."""
        now, known = loop_s(), self._ready_since
        self._ready_since = {
            (slot, member.hello): known.get((slot, member.hello), now)
            for slot, member in self._state.group.members.by_slot.items()
            if member.epoch is not None and member.ready
        }
        self._fleet.update_ready({slot: since for (slot, _), since in self._ready_since.items()})

    async def _find_ended(self) -> None:
        """Ask the fleet which processes have ended: when it signals an end, and each second.

        A new leader asks about all consumers, so it does not wait out the silence of those that
        ended while there was no leader.
        """
        while True:
            await self._check_ends.wait()
            self._check_ends.clear()
            processes = {
                slot: Process(member.process, member.sent_ms)
                for slot, member in self._state.group.members.by_slot.items()
                if member.epoch is not None
            }
            try:
                ended = await self._fleet.find_ended(processes)
            except ExternalError as exc:
                log(FLEET_FAILED, reason=str(exc))
                continue
            for slot in sorted(ended):
                self._feed(ProcessEnded(loop_s(), slot, processes[slot].name))

    # --- actions out -----------------------------------------------------------------------------

    async def _carry_out(self) -> None:
        while True:
            match await self._actions.get():
                case Pack() as request:
                    self._feed(Packed(loop_s(), await self._pack(request)))
                case StepDown(term=term):
                    raise LeadershipLost(f"a later claim stands at {term}")

    async def _pack(self, request: Pack) -> Assignment:
        adopted, load = request.packing, request.load
        pack = self._context.packing if adopted is None else algorithm(adopted)
        if len(load.rates) <= INLINE_PARTITIONS:
            return pack(load)
        with self._health.progress(f"packing of {self._context.group}"):
            return await asyncio.to_thread(pack, load)

    # --- fleet actions ---------------------------------------------------------------------------

    async def _carry_out_fleet_actions(self) -> None:
        """Reconcile with the newest desired slots; a slot to destroy waits for no other action."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(must_not_end(self._keep_reconciled()))
            while True:
                match await self._fleet_actions.get():
                    case Reconcile() as newest:
                        self._desired = newest
                        self._desired_changed.set()
                    case Destroy(slot=slot):
                        tasks.create_task(self._destroy(slot))

    async def _keep_reconciled(self) -> None:
        pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            await self._desired_changed.wait()
            self._desired_changed.clear()
            try:
                await self._reconcile(self._desired.slots)
            except ExternalError as exc:
                log(FLEET_FAILED, reason=str(exc))
                await asyncio.sleep(pause.next())
                self._desired_changed.set()  # try again, with what is desired by then
            else:
                pause.reset()

    async def _destroy(self, slot: Slot) -> None:
        pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                await self._fleet.destroy(slot)
            except ExternalError as exc:
                log(FLEET_FAILED, slot=slot, reason=str(exc))
                await asyncio.sleep(pause.next())
            else:
                return
            if self._state.group.members.get(slot).epoch is not None:
                return  # the process ended by itself, and its replacement has sent a Hello

    async def _reconcile(self, slots: Collection[Slot]) -> None:
        needed = 1 + max(slots, default=0)
        await self._bus.ensure(self._context.commands_topic, needed, COMMANDS_CONFIG)
        await self._fleet.reconcile(slots)


async def check_compacted(bus: ControlTopics, topic: str) -> None:
    """Refuse a topic whose records are deleted by age; warn where a failed broker may lose some.

    The topic may have been created by hand, with Kafka's defaults.

    Raises:
        UserError: Kafka would delete such as the Hello of a consumer that has run for long.
        BrokerUnavailable: No broker replies.
    """
    facts = await bus.describe(topic, [POLICY, UNCLEAN])
    if fault := refusal(topic, facts):
        raise UserError(fault)
    for reason in weaknesses(facts):
        log(TOPIC_UNSAFE, topic=topic, reason=reason)
