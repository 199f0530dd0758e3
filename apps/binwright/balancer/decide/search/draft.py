"""A placement that changes, with the load of each broker kept beside it."""

from collections.abc import Iterable, Sequence

from binwright.balancer.decide.search.problem import PlacementProblem, Vector

SLACK = 1e-9
"""A load is within a limit up to this share above it; the judge's tolerance is larger."""


class PlacementDraft:
    """Replicas by partition, loads by broker. Changes keep both in step.

    Attributes:
        problem: What is to be solved.
        at: Brokers of each partition, the leader first.
        loads: Of each broker, by resource.
        held: The partitions that each broker holds, as keys.
        limits: What each broker may carry, a little wider than the problem's.
    """

    __slots__ = ("_members", "at", "held", "limits", "loads", "problem")

    def __init__(self, problem: PlacementProblem, at: Iterable[Sequence[int]]) -> None:
        brokers = range(len(problem.brokers))
        self.problem = problem
        self.at: list[list[int]] = [[] for _ in problem.names]
        self.loads = [[0.0, 0.0, 0.0, 0.0] for _ in brokers]
        self.held: list[dict[int, None]] = [{} for _ in brokers]
        self.limits = [_wider(each) for each in problem.limits]
        # Replicas of each (group, broker), by topic: a group's topics share no broker.
        self._members: dict[tuple[int, int], dict[int, int]] = {}
        for p, replicas in enumerate(at):
            for b in replicas:
                self.add(p, b)

    # --- changes -------------------------------------------------------------------------------

    def add(self, p: int, b: int) -> None:
        """Give a broker a replica: the leader if the partition has none, else a follower."""
        problem, replicas = self.problem, self.at[p]
        self._count(b, problem.follows[p] if replicas else problem.leads[p], 1)
        replicas.append(b)
        self.held[b][p] = None
        self._enter(p, b)

    def shift(self, p: int, b: int, c: int) -> None:
        """Let broker c hold what b holds of a partition, in the same role."""
        replicas, needs = self.at[p], self.needed(p, b)
        self._count(b, needs, -1)
        self._count(c, needs, 1)
        replicas[replicas.index(b)] = c
        del self.held[b][p]
        self.held[c][p] = None
        self._leave(p, b)
        self._enter(p, c)

    def lead(self, p: int, b: int) -> None:
        """Let the replica at broker b lead; it changes places with the leader."""
        replicas, problem = self.at[p], self.problem
        old, place = replicas[0], replicas.index(b)
        self._count(old, problem.leads[p], -1)
        self._count(old, problem.follows[p], 1)
        self._count(b, problem.follows[p], -1)
        self._count(b, problem.leads[p], 1)
        replicas[0], replicas[place] = b, old

    def _count(self, b: int, needs: Vector, sign: int) -> None:
        load = self.loads[b]
        load[0] += sign * needs[0]
        load[1] += sign * needs[1]
        load[2] += sign * needs[2]
        load[3] += sign * needs[3]

    def _enter(self, p: int, b: int) -> None:
        """Count a topic of a group at a broker."""
        if (group := self.problem.groups[p]) >= 0:
            topics, topic = self._members.setdefault((group, b), {}), self.problem.topics[p]
            topics[topic] = topics.get(topic, 0) + 1

    def _leave(self, p: int, b: int) -> None:
        """Count one replica of a topic of a group less."""
        if (group := self.problem.groups[p]) >= 0:
            topics, topic = self._members[group, b], self.problem.topics[p]
            topics[topic] -= 1
            if not topics[topic]:
                del topics[topic]

    # --- questions -----------------------------------------------------------------------------

    def leader_extra(self, p: int) -> Vector:
        """Return what a leader of a partition needs more than a follower."""
        lead, follow = self.problem.leads[p], self.problem.follows[p]
        return (
            lead[0] - follow[0],
            lead[1] - follow[1],
            lead[2] - follow[2],
            lead[3] - follow[3],
        )

    def needed(self, p: int, b: int) -> Vector:
        """Return what the replica at a broker needs."""
        leads = self.at[p][0] == b
        return self.problem.leads[p] if leads else self.problem.follows[p]

    def may_hold(self, p: int, c: int, instead_of: int = -1) -> bool:
        """Return whether a broker may get a replica, by all constraints but its load.

        Args:
            p: The partition.
            c: The broker.
            instead_of: The broker that gives its replica up; -1: none.
        """
        problem, replicas = self.problem, self.at[p]
        if not problem.allowed[p][c] or c in replicas:
            return False
        racks, most = problem.racks, problem.most[p]
        if most < len(replicas) + (instead_of < 0):
            rack = racks[c]
            if sum(racks[b] == rack for b in replicas if b != instead_of) >= most:
                return False
        if (group := problem.groups[p]) < 0:
            return True
        topics = self._members.get((group, c))
        return not topics or (len(topics) == 1 and problem.topics[p] in topics)

    def may_leave(self, p: int, b: int) -> bool:
        """Return whether a replica may go from where it is."""
        return not self.problem.fixed[p] and b not in self.problem.pins[p]

    def fits(self, c: int, needs: Vector) -> bool:
        """Return whether a broker has room for more."""
        load, limit = self.loads[c], self.limits[c]
        return (
            load[0] + needs[0] <= limit[0]
            and load[1] + needs[1] <= limit[1]
            and load[2] + needs[2] <= limit[2]
            and load[3] + needs[3] <= limit[3]
        )

    def fill(self, c: int, needs: Vector) -> float:
        """Return the largest share of a limit that a broker would carry with more."""
        load, limit = self.loads[c], self.limits[c]
        return max(
            (load[0] + needs[0]) / limit[0],
            (load[1] + needs[1]) / limit[1],
            (load[2] + needs[2]) / limit[2],
            (load[3] + needs[3]) / limit[3],
        )

    def excess(self, b: int) -> float:
        """Return how much a broker carries above its limits, over all resources."""
        load, limit = self.loads[b], self.limits[b]
        total = 0.0
        for place in range(4):
            if load[place] > limit[place]:
                total += load[place] - limit[place]
        return total

    def overloaded(self) -> list[int]:
        """Return the brokers that carry too much, in order of their places."""
        return [b for b in range(len(self.loads)) if self.excess(b)]

    def is_complete(self) -> bool:
        """Return whether each partition has its replicas."""
        counts = self.problem.counts
        return all(len(at) == n for at, n in zip(self.at, counts, strict=True))

    def copied(self) -> int:
        """Return the bytes that the placement copies."""
        problem = self.problem
        return sum(
            problem.sizes[p] * sum(b not in problem.homes[p] for b in replicas)
            for p, replicas in enumerate(self.at)
        )

    def led_elsewhere(self) -> int:
        """Return how many partitions have another leader than today."""
        homes = self.problem.homes
        return sum(replicas[0] != homes[p][0] for p, replicas in enumerate(self.at))


def _wider(limit: Vector) -> Vector:
    d, i, o, c = (x * (1 + SLACK) + SLACK for x in limit)
    return d, i, o, c


def undo(draft: PlacementDraft) -> None:
    """Return replicas and leaders to their brokers of today while every limit holds.

    The most bytes first, until a pass returns nothing.
    """
    again = True
    while again:
        again = _return_replicas(draft)
    _return_leaders(draft)


def _return_replicas(draft: PlacementDraft) -> bool:
    """Return replicas home; whether any went."""
    problem, any_returned = draft.problem, False
    moved = [p for p, at in enumerate(draft.at) if not problem.fixed[p] and _away(draft, p, at)]
    for p in sorted(moved, key=lambda p: (-problem.sizes[p], p)):
        for c in _away(draft, p, draft.at[p]):
            for home in problem.homes[p]:
                needs = draft.needed(p, c)
                fits = draft.may_leave(p, c) and draft.may_hold(p, home, c)
                if fits and draft.fits(home, needs):
                    draft.shift(p, c, home)
                    any_returned = True
                    break
    return any_returned


def _away(draft: PlacementDraft, p: int, at: list[int]) -> list[int]:
    """Return the brokers that would copy a partition."""
    homes = draft.problem.homes[p]
    return [b for b in at if b not in homes]


def _return_leaders(draft: PlacementDraft) -> None:
    """Let the leaders of today lead again where they still have a replica, and room."""
    for p, at in enumerate(draft.at):
        leader = draft.problem.homes[p][0]
        is_follower = at and at[0] != leader and leader in at
        if is_follower and draft.fits(leader, draft.leader_extra(p)):
            draft.lead(p, leader)
