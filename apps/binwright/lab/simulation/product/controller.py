"""The product's controller on virtual time: events in, actions out, as its shell does it."""

from collections import Counter
from collections.abc import Sequence
from math import ceil, floor

from binwright.controller.decide.events import (
    Action,
    Broadcast,
    Destroy,
    Event,
    Packed,
    Publish,
    Reconcile,
    Send,
    Tick,
)
from binwright.controller.decide.machine import begin, transition
from binwright.controller.decide.states import State
from binwright.group.fold import Measured, RecordRead
from binwright.group.plans import Pack
from binwright.group.rates import PERIOD_S
from binwright.lab.simulation.clock import TICKS, Clock
from binwright.lab.simulation.fluid.arrivals import FluidLoad
from binwright.lab.simulation.fluid.data_path import DataPath
from binwright.lab.simulation.outcome import ConsumerCounts, GroupChange
from binwright.lab.simulation.product.consumers import Consumers
from binwright.lab.simulation.product.idle_skip import awaits_reports, next_tick
from binwright.lab.simulation.scenario import ROUNDING, TICK_S, Scenario
from binwright.packing.catalogue import Packing
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Inbound, Planned, Report
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond

NAME = "simulated"
NOTHING = BytesPerSecond(0.0)


class SimulatedController:
    """One leadership over simulated consumers.

    Messages take half a hand-over each way: the new owner reads two messages after the stop.

    Attributes:
        changes: Plans that went ahead, in order.
        logs: How often each event was logged.
    """

    def __init__(  # noqa: PLR0917 - the scenario and its shared state
        self,
        scenario: Scenario,
        packing: Packing,
        clock: Clock,
        data: DataPath,
        counts: ConsumerCounts,
        every_second: bool = False,
    ) -> None:
        """Begin to lead now; `every_second` sends all ticks, also those that change nothing."""
        self.changes: list[GroupChange] = []
        self.logs: Counter[str] = Counter()
        self._scenario, self._packing, self._clock = scenario, packing, clock
        self._every_second = every_second
        self._columns, self._data = _columns(scenario.load), data
        self._hop_s = scenario.timing.hand_over_s / 2
        self._origin = clock.now
        self._offset = 0
        self._measurement = -1  # the number of the last one
        self._reported_at = self._ticked_at = clock.now
        self._wake_at = clock.now + TICK_S
        self._consumers = Consumers(scenario, clock, data, counts, self._publish)
        self._state, actions = begin(scenario.config, NAME, clock.now)
        self._dispatch(actions)
        clock.at(self._wake_at, self._wake, TICKS)

    @property
    def state(self) -> State:
        """Return the machine's state."""
        return self._state

    # --- events in -------------------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        self._state, actions = transition(self._state, event)
        self._dispatch(actions)

    def _read(self, offset: int, message: Inbound) -> None:
        """Read a record, by the rates that were measured before it."""
        interval_s = self._scenario.timing.interval_s
        self._measure(ceil((self._clock.now - self._origin) / interval_s) - 1)
        self._feed(RecordRead(self._clock.now, offset, message))
        if isinstance(message, Report):
            return  # what follows from it was done at once
        # A tick comes after the messages of its time, unless it has been sent already.
        following = self._origin + ceil((self._clock.now - self._origin) / TICK_S) * TICK_S
        self._wake_by(max(following, self._ticked_at + TICK_S))

    def _wake(self) -> None:
        """Tick, after the measurement and the reports that are due."""
        now = self._clock.now
        if now != self._wake_at:
            return  # planned before something happened
        number = floor((now - self._origin) / self._scenario.timing.interval_s + ROUNDING)
        self._measure(number)
        self._report()
        self._feed(Tick(now, round(1000 * now)))  # its days begin with the scenario
        self._wake_by(self._next_wake(now), again=True)

    def _next_wake(self, now: float) -> float:
        if self._every_second:
            return now + TICK_S
        behind = any(self._lags())
        return next_tick(self._state, now, self._scenario, behind=behind)

    def _wake_by(self, time: float, *, again: bool = False) -> None:
        if again or time < self._wake_at:
            self._wake_at = time
            self._clock.at(time, self._wake, TICKS)

    def _measure(self, number: int) -> None:
        """Apply measurement `number`, and those before it that the volatility looks at."""
        while (due := self._before_period_ends()) < number:
            self._apply_measurement(max(due, self._measurement + 1))
        if number > self._measurement:
            self._apply_measurement(number)

    def _before_period_ends(self) -> int:
        """Return the number of the next measurement that matters for the rates' volatility.

        That is the first one after its period, and the one before: of several topics one is
        compared while the others still have their rates of the measurement before.
        """
        volatility, interval_s = self._state.group.load.volatility, self._scenario.timing.interval_s
        if volatility.since is None:
            return self._measurement + 1
        ends = ceil((volatility.since + PERIOD_S - self._origin) / interval_s)
        return ends - 1 if self._measurement < ends - 1 else ends

    def _apply_measurement(self, number: int) -> None:
        timing, window_s = self._scenario.timing, self._scenario.timing.window_s
        self._measurement = number
        now = self._origin + number * timing.interval_s
        rates, lags = self._scenario.measured_at(now), self._lags()
        for topic, columns in self._columns.items():
            measurement = Measurement(
                topic=topic,
                at_ms=max(round(now * 1000), 0),
                monitor=NAME,
                number=number,
                interval_s=timing.interval_s,
                count=len(columns),
                partitions=tuple(
                    [
                        PartitionRate(n, NOTHING, window_s, 0, 0, None)
                        if i is None
                        else PartitionRate(n, rates[i], window_s, lags[i], 0, 1.0)
                        for n, i in enumerate(columns)
                    ]
                ),
            )
            self._feed(Measured(now, measurement))

    def _lags(self) -> Sequence[int]:
        """Return the bytes that wait in each partition; consumers report that they are at 0."""
        if not self._scenario.config.settings.catch_up_s:
            return [0] * len(self._scenario.load.partitions)
        return list(map(round, self._data.lags(self._clock.now)))

    def _report(self) -> None:
        """Let all consumers report, as often as the controller must read of them.

        Reports go the way of all messages, so that none overtakes a reply. After ticks that were
        left out none is due: the controller takes the gap for a pause of its own, and gives all
        consumers more time.
        """
        now, timeout_s = self._clock.now, self._scenario.config.settings.consumer_timeout_s
        paused = now - self._ticked_at > timeout_s / 2
        self._ticked_at = now
        if paused:
            self._reported_at = now
            return
        are_awaited = self._every_second or awaits_reports(self._state.group)
        least_s = 0.0 if are_awaited else timeout_s / 4
        if now - self._reported_at >= max(self._scenario.timing.report_s, least_s):
            self._reported_at = now
            for report in self._consumers.reports():
                self._publish(report)

    # --- actions out -----------------------------------------------------------------------------

    def _publish(self, message: Inbound) -> int:
        """Append to metadata partition 0; the controller reads it a moment later."""
        self._offset += 1
        offset = self._offset
        self._clock.at(self._clock.now + self._hop_s, lambda: self._read(offset, message))
        return offset

    def _dispatch(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case Publish(message=message):
                    if isinstance(message, Planned):
                        self._note(message)
                    self._publish(message)
                case Send() | Broadcast():
                    self._send(action)
                case Pack() as request:
                    self._feed(Packed(self._clock.now, self._packing(request.load)))
                case Reconcile(slots=slots):
                    self._consumers.reconcile(slots)
                case Destroy(slot=slot):
                    self._consumers.destroy(slot)
                case Log(event=event):
                    self.logs[event] += 1
                case _:
                    raise AssertionError(f"a single controller does not step down: {action}")

    def _note(self, plan: Planned) -> None:
        reasons = "; ".join(plan.reasons)
        self.changes.append(GroupChange(self._clock.now, plan.consumers, len(plan.moves), reasons))

    def _send(self, action: Send | Broadcast) -> None:
        arrives = self._clock.now + self._hop_s
        if isinstance(action, Send):
            slot, message = action.slot, action.message
            self._clock.at(arrives, lambda: self._consumers.deliver(slot, message))
        else:
            command = action.message
            self._clock.at(arrives, lambda: self._consumers.broadcast(command))


def _columns(load: FluidLoad) -> dict[str, list[int | None]]:
    """Return topic -> the index of each partition by its number, None where the load lacks it."""
    columns: dict[str, list[int | None]] = {}
    for topic, indices in load.topics.items():
        known = {load.partitions[index].partition: index for index in indices}
        columns[topic] = [known.get(number) for number in range(max(known) + 1)]
    return columns
