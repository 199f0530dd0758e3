"""Which ConsumerGroup objects are led, and how much each may have of its namespace's limits.

The oldest object of a group leads it. Older objects have what they ask for before younger ones do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from binwright.controller.decide.topic_limits import NamespaceTopics, TopicShare, Usage
from binwright.controller.group_context import GroupContext
from binwright.controller.group_objects.allowed import may_name
from binwright.controller.group_objects.spec import group_name
from binwright.controller.settings import ControllerProgramSettings
from binwright.kubernetes.limits import OVER_LIMIT, Limited, over_limit
from binwright.kubernetes.metrics import BEYOND_LIMIT
from binwright.kubernetes.objects import Obj, age_of, key_of
from binwright.kubernetes.settings import namespace_refusal
from binwright.kubernetes.status import Condition
from binwright.runtime.metrics import Sample

Key = tuple[str, str]
"""Of an object: its namespace and name."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """An object whose group is led."""

    consumers: int  # that it may have
    wanted: int  # that it asks for


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object whose group is not led."""

    reason: str
    text: str


Admission = Admitted | RefusedObject


@dataclass(slots=True)
class _Used:
    groups: int = 0
    consumers: int = 0


class NamespaceLimits:
    """The limits of all namespaces, and what their objects have of them."""

    def __init__(self, base: ControllerProgramSettings) -> None:
        """Take the limits from the controller's settings."""
        self._kubernetes, self._max_slots = base.kubernetes, base.controller.max_slots
        limits = base.kubernetes.limits
        self._limits, self._topic_limit = limits, Usage(limits.topics, limits.partitions)
        self._admissions: Mapping[Key, Admission] = {}
        self._topics: dict[str, NamespaceTopics] = {}  # by namespace

    def clear(self) -> None:
        """Forget what objects have: this process leads no more."""
        self._admissions = {}
        self._topics.clear()

    # --- groups and consumers ---------------------------------------------------------------------

    def admissions(self, objects: Iterable[Obj]) -> Mapping[Key, Admission]:
        """Return what becomes of each object of all namespaces, the oldest first."""
        owners: dict[str, Key] = {}
        used: dict[str, _Used] = {}
        admissions: dict[Key, Admission] = {}
        for obj in sorted(objects, key=age_of):
            key, group = key_of(obj), group_name(obj)
            wanted: int = obj["spec"].get("maxConsumers", self._max_slots)
            if text := namespace_refusal(key[0]):
                admissions[key] = RefusedObject("NamespaceRefused", text)
            elif not may_name(group, self._kubernetes, key[0]):
                admissions[key] = Admitted(wanted, wanted)  # its settings are read, and refused
            elif (owner := owners.setdefault(group, key)) != key:
                admissions[key] = _taken(group, owner)
            else:
                admissions[key] = self._admitted(used.setdefault(key[0], _Used()), wanted, key[0])
        return admissions

    def _admitted(self, used: _Used, wanted: int, namespace: str) -> Admission:
        if used.groups >= self._limits.groups:
            return RefusedObject(OVER_LIMIT, over_limit(namespace, "groups", self._limits))
        consumers = min(wanted, self._limits.consumers - used.consumers)
        if consumers <= 0:
            return RefusedObject(OVER_LIMIT, self._of_consumers(namespace))
        used.groups += 1
        used.consumers += consumers
        return Admitted(consumers, wanted)

    def _of_consumers(self, namespace: str) -> str:
        return f"{over_limit(namespace, 'consumers', self._limits)}, by their maxConsumers"

    def apply(self, admissions: Mapping[Key, Admission]) -> None:
        """Take over which groups are led; those that are led no more free what they have."""
        self._admissions = admissions
        led: dict[str, list[str]] = {}
        for (namespace, name), admission in admissions.items():
            if isinstance(admission, Admitted):
                led.setdefault(namespace, []).append(name)
        known = self._topics
        self._topics = {n: known.get(n) or NamespaceTopics(self._topic_limit) for n in led}
        for namespace, names in led.items():
            self._topics[namespace].order(names)

    # --- topics and partitions --------------------------------------------------------------------

    def share(self, key: Key) -> TopicShare:
        """Return what a group that is led may read of its topics, for one leadership."""
        return TopicShare(self._topics[key[0]], key[1])

    def condition(self, key: Key, admitted: Admitted) -> Condition:
        """Return the condition WithinLimits of a group that is led."""
        texts = [*self._texts(key, admitted)]
        if not texts:
            return Condition("WithinLimits", holds=True, reason="Within")
        return Condition("WithinLimits", holds=False, reason=OVER_LIMIT, message="; ".join(texts))

    def _texts(self, key: Key, admitted: Admitted) -> Iterator[str]:
        namespace, name = key
        if admitted.consumers < admitted.wanted:
            yield (
                f"at most {admitted.consumers} of {admitted.wanted} consumers may run: "
                f"{self._of_consumers(namespace)}"
            )
        topics = self._topics[namespace]
        if refused := topics.refused(name):
            older, limit = topics.older(name), topics.limit
            yield (
                f"{sum(refused.values())} partitions of {len(refused)} topics are not read, among "
                f"them of {min(refused)}: namespace {namespace} may have {limit.topics} topics "
                f"(kubernetes.limits.topics of the settings) with {limit.partitions} partitions "
                f"(kubernetes.limits.partitions), and older groups read {older.topics} with "
                f"{older.partitions}"
            )

    def samples(self) -> Iterator[Sample]:
        """Yield how much namespaces would have beyond their limits; 0 where they have a group."""
        over: Counter[tuple[str, Limited]] = Counter()
        for (namespace, name), admission in self._admissions.items():
            if isinstance(admission, RefusedObject):
                over[namespace, "groups"] += admission.reason == OVER_LIMIT
                continue
            refused = self._topics[namespace].refused(name)
            over[namespace, "groups"] += 0
            over[namespace, "consumers"] += admission.wanted - admission.consumers
            over[namespace, "topics"] += len(refused)
            over[namespace, "partitions"] += sum(refused.values())
        for (namespace, limit), number in over.items():
            labels = {"namespace": namespace, "limit": limit}
            yield Sample(BEYOND_LIMIT, number, labels)


def _taken(group: str, owner: Key) -> RefusedObject:
    # Topics, offsets and tables belong to Kafka and the lake, which have no namespaces.
    text = (
        f"group {group} belongs to the ConsumerGroup {'/'.join(owner)}; for another group, create "
        "this object again with another name in spec.group"
    )
    return RefusedObject("GroupTaken", text)


def capped(context: GroupContext, consumers: int) -> GroupContext:
    """Return the context of a group that may have no more consumers."""
    config = context.config.with_settings(
        max_slots=min(context.config.settings.max_slots, consumers),
        min_slots=min(context.config.settings.min_slots, consumers),
    )
    return replace(context, config=config)
