"""What the page draws: a group's status with the rate of each partition, in few bytes.

Partitions are [topic's index, number, …], for a group may have 100,000 of them. Topics are those of
`topics`, as text of any kind. The shape is told in docs/how-to/page.md.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from binwright.look.group_view import GroupView
from binwright.look.order_text import order_text
from binwright.look.page.live_group import LiveGroup
from binwright.look.status import ConsumerStatus, ProposalStatus, Status
from binwright.look.table_status import TableStatus
from binwright.protocol.model import TopicPartition

NEWS = 50


def snapshot(live: LiveGroup, status: Status, now_ms: int) -> dict[str, Any]:
    """Return what the page draws.

    Args:
        live: The group's view, and whether it is up to date.
        status: The view summed up.
        now_ms: Wall clock.
    """
    view = live.view
    topics = _Topics(dict.fromkeys(t for table in status.tables for t in table.topics))
    return {
        "group": status.group,
        "at_ms": now_ms,
        "state": status.state,
        "problem": asdict(live.problem) if live.problem else None,
        "rates_age_s": live.rates_age_s(now_ms),
        "rates_stale": live.rates_stale(now_ms),
        "controller": status.controller,
        "term": status.term,
        "limit": status.limits.default if status.limits else None,
        "partitions": status.partitions,
        "load": round(status.load),
        "staging": round(status.staging),
        "lag": status.lag,
        "age_s": status.age_s,
        "landed_rows": view.landed_rows,
        "consumers": [
            _consumer(each, view, topics, status.limit(each.slot)) for each in status.consumers
        ],
        "unread": [_partition(p, view, topics) for p in status.unread],
        "hot": [[*topics.at(h.partition), round(h.rate), round(h.limit)] for h in status.hot],
        "moves": [[*topics.at(m.partition), m.old, m.new, m.phase] for m in status.moves],
        "tables": [_table(each) for each in status.tables],
        "plan": asdict(status.plan) if status.plan else None,
        "proposal": _proposal(status.proposal, topics) if status.proposal else None,
        "held": status.held,
        "orders": [order_text(each) for each in status.orders],
        "news": list(view.recent_events)[-NEWS:],
        "topics": topics.names,
    }


class _Topics:
    """Numbers for topics' names: those known at the beginning first, so that they stay the same."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def at(self, partition: TopicPartition) -> list[int]:
        topic, number = partition
        known = self._numbers.get(topic)
        if known is None:
            known = self._numbers[topic] = len(self.names)
            self.names.append(topic)
        return [known, number]


def _partition(of: TopicPartition, view: GroupView, topics: _Topics) -> list[int | None]:
    rate = view.rates.get(of)
    return [*topics.at(of), None if rate is None else round(rate), view.partition_lag(of)]


def _consumer(
    of: ConsumerStatus, view: GroupView, topics: _Topics, limit: float | None
) -> dict[str, Any]:
    return {
        "slot": of.slot,
        "state": of.state,
        "limit": limit,
        "load": round(of.load),
        "staging": round(of.staging),
        "lag": of.lag,
        "silent_s": of.silent_s,
        "busy": of.busy,
        "capacity": round(of.capacity.bytes_per_s) if of.capacity else None,
        "lost_offsets": of.lost_offsets,
        "tables": of.tables,
        "partitions": [_partition(p, view, topics) for p in of.partitions],
    }


def _table(of: TableStatus) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__slots__ if name != "partitions"}


def _proposal(of: ProposalStatus, topics: _Topics) -> dict[str, Any]:
    changes = [[*topics.at(each.partition), each.old, each.new] for each in of.changes]
    return {name: getattr(of, name) for name in of.__slots__} | {"changes": changes}
