"""What the ScaledGroups of a namespace may have of a pass over all groups, the older ones first."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from binwright.kubernetes.limits import Limited, LimitSettings, over_limit
from binwright.kubernetes.metrics import BEYOND_LIMIT
from binwright.runtime.metrics import Sample
from binwright.scaler.decide.sizing import Verdict


class Size(NamedTuple):
    """What is looked up for a group at each pass."""

    topics: int
    partitions: int = 0  # 0: not known yet

    @classmethod
    def of(cls, verdict: Verdict) -> "Size":
        """Return what the last pass has looked up."""
        loads = verdict.work.loads
        return cls(len({partition.topic for partition in loads}), len(loads))


NO_SIZE = Size(0)


@dataclass(slots=True)
class Admission:
    """Admits objects, which come in order of age, until their namespace's limits are reached."""

    limits: LimitSettings
    _used: Counter[tuple[str, Limited]] = field(default_factory=Counter)
    _over: Counter[tuple[str, Limited]] = field(default_factory=Counter)

    def refusal(self, namespace: str, size: Size) -> str:
        """Return why the next object is not scaled; empty: it is."""
        wanted: dict[Limited, int] = {
            "groups": 1,
            "topics": size.topics,
            "partitions": size.partitions,
        }
        over: list[Limited] = []
        for what, number in wanted.items():
            limit: int = getattr(self.limits, what)
            if self._used[namespace, what] + number > limit:
                over.append(what)
            self._over[namespace, what] += number if what in over else 0
        if over:
            asked = f"; this one needs {wanted[over[0]]}"
            return over_limit(namespace, over[0], self.limits) + asked
        for what, number in wanted.items():
            self._used[namespace, what] += number
        return ""

    def samples(self) -> Iterator[Sample]:
        """Yield how much namespaces would have beyond their limits; 0 where they have an object."""
        for (namespace, limit), number in self._over.items():
            labels = {"namespace": namespace, "limit": limit}
            yield Sample(BEYOND_LIMIT, number, labels)
