"""The protocol under everything at once: crashes, pauses, take-overs, late writes, lost words.

What must hold: no row lands twice and none is skipped (the tables of `world` refuse it), no
controller ever finds its beliefs denied, and when the faults end everything lands.
"""

import os
from collections.abc import Callable
from random import Random

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from binwright.core.model import Slot

from .process import Process
from .ruler import Ruler
from .world import World

TOPICS = {"a": 2, "b": 2}
SLOTS = 3
SEED = some.integers(0, 2**32)
EXAMPLES = int(os.environ.get("PROTOCOL_EXAMPLES", "60"))  # thousands find more, in minutes


def act(world: World, random: Random, count: int) -> None:
    """Let anybody take the next step, so many times."""
    for _ in range(count):
        if steps := world.steps():
            random.choice(steps)()
        if world.processes and random.random() < 0.02:
            random.choice(world.processes).hint()


def pause(actor: Process | Ruler) -> None:
    actor.paused = True


def lose_sight(process: Process) -> None:
    """The fleet starts another for the slot, while this one goes on."""
    process.owned = False


def lose_sight_of_a_frozen(process: Process) -> None:
    process.owned, process.paused = False, True


CONSUMER_FAULTS = [
    Process.end,
    Process.leave,
    Process.drain,
    Process.give_up,
    Process.stutter,
    pause,
    lose_sight,
    lose_sight_of_a_frozen,
]
RULER_FAULTS = [Ruler.end, Ruler.stutter, pause]


class Interleavings(RuleBasedStateMachine):
    """Hypothesis chooses who acts how long, and what goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(TOPICS)

    @initialize()
    def begin(self) -> None:
        self.world.settle()

    # --- what happens ------------------------------------------------------------------------

    @rule(seed=SEED, count=some.integers(1, 60))
    def some_act(self, seed: int, count: int) -> None:
        act(self.world, Random(seed), count)

    @rule(seed=SEED, seconds=some.integers(1, 5))
    def time_passes(self, seed: int, seconds: int) -> None:
        random = Random(seed)
        for _ in range(seconds):
            self.world.tick(random.choice([0.3, 1.0, 1.0, 3.0]))
            act(self.world, random, 40)

    @rule(seed=SEED)
    def deadlines_pass(self, seed: int) -> None:
        """Long enough for the silent to be declared dead, and for heirs to be found."""
        for _ in range(5):
            self.world.tick(3.0)
            act(self.world, Random(seed), 60)

    @rule(seed=SEED, slots=some.lists(some.integers(0, SLOTS - 1), min_size=4, max_size=4))
    def load_changes(self, seed: int, slots: list[int]) -> None:
        """Rows come, and the next packing puts each partition where it likes."""
        partitions = sorted(self.world.produced)
        self.world.wish = dict(zip(partitions, map(Slot, slots), strict=True))
        for partition in partitions:
            self.world.produced[partition] += 1 + seed % 3
        self.time_passes(seed, 3)

    # --- what goes wrong ---------------------------------------------------------------------

    @rule(seed=SEED, fault=some.sampled_from(CONSUMER_FAULTS), then=some.integers(0, 3))
    def a_consumer_fails(self, seed: int, fault: Callable[[Process], None], then: int) -> None:
        """Best while it writes: then the server goes on without it, perhaps for long."""
        random = Random(seed)
        act(self.world, random, seed % 9)
        busy = [process for process in self.world.processes if process.call]
        if found := busy or self.world.processes:
            process = random.choice(found)
            if process.call and then:
                process.call.write.stuck = True
            fault(process)
            self.world.room = then < 3

    @rule(seed=SEED, fault=some.sampled_from(RULER_FAULTS))
    def a_controller_fails(self, seed: int, fault: Callable[[Ruler], None]) -> None:
        act(self.world, Random(seed), seed % 9)
        if self.world.rulers:
            fault(Random(seed).choice(self.world.rulers))

    @rule()
    def another_controller_claims(self) -> None:
        if len(self.world.rulers) < SLOTS:
            self.world.crown()

    @rule(seed=SEED)
    def the_monitor_says_that_partitions_are_gone(self, seed: int) -> None:
        self.world.hidden = {Random(seed).choice(sorted(self.world.produced))}
        self.time_passes(seed, 2)

    @rule(seed=SEED)
    def most_things_mend(self, seed: int) -> None:
        random = Random(seed)
        for actor in self.world.actors():
            actor.paused &= random.random() < 0.3
        for write in self.world.writes:
            write.stuck &= random.random() < 0.7
        self.world.hidden, self.world.room = set(), True

    # --- what must hold ----------------------------------------------------------------------

    @invariant()
    def no_controller_finds_its_beliefs_denied(self) -> None:
        assert "assignment.doubted" not in dict(self.world.said), self.world.said[-1]

    def teardown(self) -> None:
        self.world.settle()
        self.no_controller_finds_its_beliefs_denied()


Interleavings.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=60, deadline=None, print_blob=True
)
test_whatever_goes_wrong_every_row_lands_once = Interleavings.TestCase
