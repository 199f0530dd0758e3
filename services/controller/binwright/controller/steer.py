"""A reign: events into the pure machine, its actions out into the world.

The state changes in `_feed` only, between awaits. What it asks for is done in that order: words to
one partition by one task each, orders to the fleet by others, so that neither a slow pod nor the
commands to others delay a command, and no order that fails delays another.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import structlog

from binwright.controller.ear import Ear
from binwright.controller.measurements import Measurements
from binwright.controller.needs import publish_needs
from binwright.controller.topic_check import check_metadata_topic
from binwright.controller.voice import Voice
from binwright.core.errors import WorldError
from binwright.core.events import (
    Action,
    Broadcast,
    Destroy,
    Ended,
    Event,
    Heard,
    Measured,
    Pack,
    Packed,
    Publish,
    Reconcile,
    Say,
    StepDown,
    Tell,
    Tick,
)
from binwright.core.machine import begin, transition
from binwright.core.messages import Approved
from binwright.core.model import Assignment, Slot, metadata_partition
from binwright.core.packing.catalogue import Packing
from binwright.core.ports import Bus, Fleet, Process, Reader
from binwright.core.rules import Rules
from binwright.core.selection import METADATA_SUFFIX
from binwright.core.states import State
from binwright.shell.history import History
from binwright.shell.letters import (
    INBOX,
    LANDING_CONFIG,
    LANDING_PARTITIONS,
    METADATA_CONFIG,
    inbound,
)
from binwright.shell.pauses import Pause
from binwright.shell.run import endless

log = structlog.get_logger()

TICK_S = 1.0
RETRY_S, LONGEST_RETRY_S = 1.0, 10.0  # of an order to the fleet
INLINE_PARTITIONS = 2_000  # above, the packing gets a thread of its own


class Deposed(Exception):
    """Another controller claimed: this reign is over."""


@dataclass(frozen=True, slots=True)
class Realm:
    """What is ruled, and by which rules."""

    metadata_topic: str
    landing_topic: str
    needs_topic: str
    rules: Rules
    packing: Packing

    @property
    def group(self) -> str:
        """Return the group's name."""
        return self.metadata_topic.removesuffix(METADATA_SUFFIX)


class Controller:
    """One reign, from its Claim until somebody else's."""

    def __init__(
        self,
        bus: Bus,
        fleet: Fleet,
        realm: Realm,
        measurements: Measurements,
        observe: Callable[[Action], None] = lambda _: None,
    ) -> None:
        """Rule `realm`; `observe` is told of everything that the machine asks for."""
        self._observe, self._measurements = observe, measurements
        self._bus, self._fleet, self._realm = bus, fleet, realm
        self._voice = Voice(bus, realm.metadata_topic)
        self._words: asyncio.Queue[Action] = asyncio.Queue()
        self._orders: asyncio.Queue[Reconcile | Destroy] = asyncio.Queue()
        self._wish, self._wished = Reconcile(frozenset()), asyncio.Event()
        self._ends = asyncio.Event()  # a process may have ended: the fleet says so, or it is time
        self._ready_since: dict[tuple[Slot, int | None], float] = {}
        self._state, self._first = begin(realm.rules, str(uuid4()), self._now())

    @property
    def state(self) -> State:
        """Return where the machine is."""
        return self._state

    def approve(self, plan: int, by: str) -> None:
        """Say that a person, or what they wrote, wants exactly this plan; it is judged as heard."""
        self._voice.say(INBOX, Approved(plan=plan, by=by))

    async def reign(self) -> None:
        """Claim, synchronize, and rule until deposed.

        Raises:
            Deposed: A later claim was read.
            UserError: The hand-over topic is set up so that it would lose records.
            WorldError: Kafka could not be reached at the start.
        """
        await self._bus.ensure(self._realm.metadata_topic, 1, METADATA_CONFIG)
        await check_metadata_topic(self._bus, self._realm.metadata_topic)
        await self._bus.ensure(self._realm.landing_topic, LANDING_PARTITIONS, LANDING_CONFIG)
        history = await self._bus.end(self._realm.metadata_topic, INBOX)
        reader = await self._bus.reader(self._realm.metadata_topic, INBOX, 0)
        heard = Ear(self._bus, self._realm.metadata_topic, reader)
        self._act(self._first)
        self._fleet.watch(self._ends.set)
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in (
                    self._listen(History(heard, history)),
                    self._watch(),
                    self._tick(heard),
                    self._find_ended(),
                ):
                    tasks.create_task(endless(work))
                for work in (heard.prove(), self._speak(), self._voice.run(), self._order()):
                    tasks.create_task(endless(work))
                if (topics := self._realm.rules.topics) is not None:
                    needs = publish_needs(
                        self._bus, self._realm.needs_topic, self._realm.group, topics
                    )
                    tasks.create_task(endless(needs))
        except* Deposed as deposed:
            raise Deposed(str(deposed.exceptions[0])) from None
        finally:
            await heard.close()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    # --- events in -------------------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        before = self._state
        self._state, actions = transition(before, event)
        self._act(actions)
        if type(before) is not type(self._state):
            log.info(
                "state.changed",
                state=type(self._state).__name__.lower(),
                was=type(before).__name__.lower(),
            )

    def _act(self, actions: Collection[Action]) -> None:
        for action in actions:
            self._observe(action)
            match action:
                case Say(event=event, facts=facts):
                    log.info(event, **facts)
                case Reconcile() | Destroy():
                    self._orders.put_nowait(action)
                case _:
                    self._words.put_nowait(action)

    async def _listen(self, reader: Reader) -> None:
        async for record, message in inbound(reader):
            self._feed(Heard(self._now(), record.offset, message))

    async def _watch(self) -> None:
        with self._measurements.heard(self._realm.rules.topics) as heard:
            while True:
                measurement = await heard.get()
                self._feed(Measured(self._now(), measurement))

    async def _tick(self, ear: Ear) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._ends.set()
            if ear.hears():  # else the silence of others proves nothing: time stands still
                self._feed(Tick(self._now()))
                self._notice()

    def _notice(self) -> None:
        """Tell the fleet who is ready, and since when."""
        now, known = self._now(), self._ready_since
        self._ready_since = {
            (slot, member.hello): known.get((slot, member.hello), now)
            for slot, member in self._state.group.members.items()
            if member.epoch is not None and member.ready
        }
        self._fleet.notice({slot: since for (slot, _), since in self._ready_since.items()})

    async def _find_ended(self) -> None:
        """Learn from the fleet who has ended: when it tells of an end, and each second.

        A new leader asks about everybody: who ended while nobody led is not waited for.
        """
        while True:
            await self._ends.wait()
            self._ends.clear()
            processes = {
                slot: Process(member.process, member.sent_ms)
                for slot, member in self._state.group.members.items()
                if member.epoch is not None
            }
            try:
                ended = await self._fleet.ended(processes)
            except WorldError as exc:
                log.warning("fleet.failed", reason=str(exc))
                continue
            for slot in sorted(ended):
                self._feed(Ended(self._now(), slot, processes[slot].name))

    # --- words out -------------------------------------------------------------------------------

    async def _speak(self) -> None:
        while True:
            match await self._words.get():
                case Publish(message=message):
                    self._voice.say(INBOX, message)
                case Tell(slot=slot, message=message):
                    log.info("command.sent", kind=message.kind, slot=slot)
                    self._voice.say(metadata_partition(slot), message)
                case Broadcast(message=message):
                    await self._voice.say_to_all(message)
                case Pack() as request:
                    self._feed(Packed(self._now(), await self._pack(request)))
                case StepDown(term=term):
                    raise Deposed(f"a later claim stands at {term}")

    async def _pack(self, request: Pack) -> Assignment:
        pack = partial(
            self._realm.packing,
            *(request.rates, request.capacity, request.current),
            change=request.change,
        )
        if len(request.rates) <= INLINE_PARTITIONS:
            return pack()
        return await asyncio.to_thread(pack)

    # --- orders out ------------------------------------------------------------------------------

    async def _order(self) -> None:
        """Carry out the newest wish of who should run; what is to end waits for no other order."""
        async with asyncio.TaskGroup() as orders:
            orders.create_task(endless(self._keep_running()))
            while True:
                match await self._orders.get():
                    case Reconcile() as wish:
                        self._wish = wish
                        self._wished.set()
                    case Destroy(slot=slot):
                        orders.create_task(self._destroy(slot))

    async def _keep_running(self) -> None:
        pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            await self._wished.wait()
            self._wished.clear()
            try:
                await self._reconcile(self._wish.slots)
            except WorldError as exc:
                log.warning("fleet.failed", reason=str(exc))
                await asyncio.sleep(pause.next())
                self._wished.set()  # by then a later order may know better
            else:
                pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)

    async def _destroy(self, slot: Slot) -> None:
        pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                await self._fleet.destroy(slot)
            except WorldError as exc:
                log.warning("fleet.failed", slot=slot, reason=str(exc))
                await asyncio.sleep(pause.next())
            else:
                return
            if self._state.group.member(slot).epoch is not None:
                return  # it ended by itself, and another process is there

    async def _reconcile(self, slots: Collection[Slot]) -> None:
        needed = 1 + max((metadata_partition(slot) for slot in slots), default=0)
        await self._bus.ensure(self._realm.metadata_topic, needed, METADATA_CONFIG)
        await self._fleet.reconcile(slots)
