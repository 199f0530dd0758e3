"""A controller of the little world."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from binwright.core import machine
from binwright.core.events import (
    Action,
    Broadcast,
    Destroy,
    Event,
    Heard,
    Pack,
    Packed,
    Publish,
    Reconcile,
    Say,
    StepDown,
    Tell,
)
from binwright.core.model import BytesPerSecond
from binwright.core.rules import Rules

if TYPE_CHECKING:
    from .world import World

RULES = Rules(
    limit=BytesPerSecond(15),
    capacity=BytesPerSecond(15),
    look_again_s=5,
    start_timeout_s=30,
    plan_timeout_s=12,
    repeat_s=3,
)

Step = Callable[[], None]


class Ruler:
    """A controller: the machine, its place in partition 0, the words it has still to say."""

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.paused, self.position = world, False, 0
        self.words: deque[Action] = deque()
        self.state, words = machine.begin(RULES, name, world.now)
        self.words.extend(words)

    def end(self) -> None:
        self.world.rulers.remove(self)

    def feed(self, event: Event) -> None:
        self.state, actions = machine.transition(self.state, event)
        self.words.extend(actions)

    def steps(self) -> list[Step]:
        steps: list[Step] = [self.read] if self.position < len(self.world.inbox) else []
        return [*steps, self.speak] if self.words else steps

    def read(self) -> None:
        offset, self.position = self.position, self.position + 1
        self.feed(Heard(self.world.now, offset, self.world.inbox[offset]))

    def speak(self) -> None:
        self._say(self.words.popleft())

    def stutter(self) -> None:
        """Say a word whose confirmation is lost: it will be said again."""
        if self.words and isinstance(self.words[0], Publish | Tell | Broadcast):
            self._say(self.words[0])

    def _say(self, word: Action) -> None:
        world = self.world
        match word:
            case Publish(message=message):
                world.publish(message)
            case Tell(slot=slot, message=command):
                world.tell(slot, command)
            case Broadcast(message=command):
                world.tell_all(command)
            case Pack(rates=rates, current=current):
                self.feed(Packed(world.now, world.packing(rates, current)))
            case Reconcile(slots=slots):
                world.reconcile(slots)
            case Destroy(slot=slot):
                world.destroy(slot)
            case StepDown():
                self.end()
            case Say(event=event, facts=facts):
                world.said.append((event, facts.get("reason")))
