"""The groups that are scaled: what is wanted of each, what runs it, and what was decided last."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from binwright.scaler.decide.config import ScaledGroup
from binwright.scaler.decide.machine import State, Verdict, WorkloadSeen


class Workload(Protocol):
    """What runs a group's consumers, in a number of equal replicas."""

    def seen(self) -> WorkloadSeen | None:
        """Return its replicas as last seen; None: it is not there.

        Raises:
            ExternalError: It is not known now.
        """

    async def scale(self, replicas: int) -> None:
        """Set the number of replicas; raise an `ExternalError` if that fails."""


@dataclass(eq=False)
class Target:
    """One scaled group.

    Attributes:
        key: Distinguishes it from all other targets of this scaler.
        config: What a person wants.
        workload: What runs its consumers.
        state: Of the machine.
        verdict: The last decision; None: there was none yet.
        fault: Why the last pass brought no decision, or an order failed; empty: it did not.
        on_change: Called after each pass, and after each order that was carried out.
    """

    key: str
    config: ScaledGroup
    workload: Workload
    state: State = field(default_factory=State)
    verdict: Verdict | None = None
    fault: str = ""
    on_change: Callable[["Target", int | None], None] = lambda _target, _ordered: None
    order: "asyncio.Task[None] | None" = None

    @property
    def is_asleep(self) -> bool:
        """Whether it is at zero, and may wake by a record."""
        return self.verdict is not None and self.verdict.wanted == 0 == self.verdict.current


Targets = Mapping[str, Target]
"""By their keys."""
