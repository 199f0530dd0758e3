"""The processes of a simulated group: the product's hand-over, and a fleet that runs them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from binwright.consumer.decide import machine
from binwright.consumer.decide.machine import (
    Consumer,
    Exit,
    Fetch,
    Reply,
    ReportNow,
    Step,
    StopFetching,
    StopWriter,
)
from binwright.lab.simulation.clock import Clock
from binwright.lab.simulation.fluid.data_path import DataPath
from binwright.lab.simulation.outcome import ConsumerCounts
from binwright.lab.simulation.scenario import Scenario
from binwright.protocol.commands import Command
from binwright.protocol.metadata import Hello, Inbound, Report, TableReport
from binwright.protocol.model import Slot

VERSION = "simulated"


@dataclass(slots=True)
class SimulatedProcess:
    """One process of a slot; before its Hello it is not a consumer yet."""

    name: str
    consumer: Consumer | None = None
    ending: bool = False  # asked to end before it was a consumer


class Consumers:
    """A fleet: starts and ends the processes of slots, and carries out what their hand-over says.

    Offsets mean nothing here: how far a partition is read is what `DataPath` counts.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        data: DataPath,
        counts: ConsumerCounts,
        publish: Callable[[Inbound], int],
    ) -> None:
        """Append messages to metadata partition 0 by `publish`, which returns their offset."""
        self._scenario, self._clock, self._data = scenario, clock, data
        self._counts, self._publish = counts, publish
        self._desired: frozenset[Slot] = frozenset()
        self._processes: dict[Slot, SimulatedProcess] = {}
        self._started = 0

    @property
    def settled(self) -> bool:
        """Whether exactly the desired slots run, and all of them are ready."""
        return self._processes.keys() == self._desired and all(
            each.consumer is not None and not each.consumer.leaving
            for each in self._processes.values()
        )

    def reconcile(self, slots: Collection[Slot]) -> None:
        """Run exactly these slots; the others end once nothing is left to them."""
        self._desired = frozenset(slots)
        for slot in sorted(self._desired - self._processes.keys()):
            self._start(slot)
        for slot in sorted(self._processes.keys() - self._desired):
            process = self._processes[slot]
            if process.consumer is None:
                self._end(slot)
            else:
                self._apply(slot, machine.leave(process.consumer))

    def destroy(self, slot: Slot) -> None:
        """Kill the process of a slot; it is started again if the slot is desired."""
        if slot in self._processes:
            self._end(slot)

    def deliver(self, slot: Slot, command: Command) -> None:
        """Give a command to the process that has the slot by now, if it reads commands yet."""
        process = self._processes.get(slot)
        if process is not None and process.consumer is not None:
            now_ms = round(self._clock.now * 1000)
            self._apply(slot, machine.handle_command(process.consumer, command, max(now_ms, 0)))

    def broadcast(self, command: Command) -> None:
        """Give a command to every slot."""
        for slot in sorted(self._processes):
            self.deliver(slot, command)

    def reports(self) -> list[Report]:
        """Return the report of each process, by slot."""
        consumers = ((slot, self._processes[slot].consumer) for slot in sorted(self._processes))
        return [_report(slot, consumer) for slot, consumer in consumers if consumer is not None]

    # --- processes -------------------------------------------------------------------------------

    def _start(self, slot: Slot) -> None:
        self._started += 1
        process = self._processes[slot] = SimulatedProcess(f"simulated/{self._started}")
        self._counts.started(slot, self._clock.now)
        ready_at = self._clock.now + self._scenario.start_up_s(slot, self._clock.now)
        self._clock.at(ready_at, lambda: self._hello(slot, process))

    def _hello(self, slot: Slot, process: SimulatedProcess) -> None:
        if self._processes.get(slot) is not process:
            return  # ended while it started
        epoch = self._publish(Hello(slot=slot, process=process.name, version=VERSION))
        self._data.add_consumer(slot, self._scenario.capacity(slot), self._clock.now)
        self._counts.ready(slot, self._clock.now)
        self._apply(slot, machine.staging_ready(Consumer(slot, epoch)))

    def _end(self, slot: Slot) -> None:
        del self._processes[slot]
        self._data.remove_consumer(slot, self._clock.now)
        self._counts.ended(slot, self._clock.now)
        if slot in self._desired:
            self._start(slot)

    def _apply(self, slot: Slot, step: Step) -> None:
        process = self._processes[slot]
        process.consumer, actions = step
        for action in actions:
            match action:
                case Fetch(partition=partition, offset=offset):
                    index = self._scenario.load.index[partition]
                    self._data.start_reading(index, slot, self._clock.now)
                    if offset is None:
                        self._apply(slot, machine.located(process.consumer, partition, 0))
                case StopFetching(partition=partition):
                    index = self._scenario.load.index[partition]
                    self._data.stop_reading(index, slot, self._clock.now)
                case StopWriter(topics=topics):
                    self._apply(slot, machine.writing_stopped(process.consumer, topics))
                case Reply(message=message):
                    self._publish(message)
                case ReportNow():
                    self._publish(_report(slot, process.consumer))
                case Exit():
                    self._end(slot)
                case _:
                    pass  # a writer: rows are not simulated


def _report(slot: Slot, consumer: Consumer) -> Report:
    tables = sorted({*consumer.tables, *consumer.closing})
    return Report(
        slot=slot,
        epoch=consumer.epoch,
        term=consumer.term,
        ready=consumer.ready,
        reading={p: part.next for p, part in consumer.partitions.items()},
        writing={topic: TableReport(state="landing", committed={}, commits=1) for topic in tables},
        leaving=consumer.leaving,
    )
