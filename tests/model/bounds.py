"""What an exploration is bounded by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = frozenset(
    {
        "crash",  # a consumer ends without a word; its write goes on
        "freeze",  # a consumer sleeps, the fleet starts another, it may wake at any time
        "astray",  # the fleet starts another while this one goes on
        "unclear",  # the word about a call is lost
        "suspect",  # a living consumer is declared dead
        "leave",  # a consumer is asked to end, and waits to be relieved
        "goodbye",  # it quits everything at once
        "again",  # commands that are not answered yet are said again
        "lost",  # a command is never read: compacted away, or its partition was missing
        "doubled",  # an answer stands there twice: its confirmation was lost
        "controller crash",
        "controller pause",  # it may wake at any time, and lags behind then
        "rival",  # another controller claims beside one that reigns
        "spark",  # the server is started anew: no call gets its word, writes may outlive it
        "broker",  # every answer and command that is under way stands there twice
        "overdue",  # a plan is given up that could still have been carried out
        "compacted",  # partition 0 is compacted under a controller that lags behind
    }
)
CORE = KINDS & {
    "crash",
    "freeze",
    "unclear",
    "suspect",
    "rival",
    "controller crash",
    "controller pause",
}
"""The faults of the first model."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the world is, and how much goes wrong in it."""

    topics: Mapping[str, int] = field(default_factory=lambda: {"a": 1})
    slots: int = 2
    rows: int = 1  # of each partition
    moves: int = 1  # of partitions that are held: nothing forces them
    faults: int = 0  # in all
    kinds: frozenset[str] = CORE
    lazy: bool = False  # every word is a step of its own, and every reading
    sizes: bool = False  # batches of some of the rows and partitions that are there, too
    hints: bool = False
    compacted: bool = False  # a new controller may find partition 0 compacted
