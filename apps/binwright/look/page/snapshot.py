"""What the page draws: a group's status with the rate of each partition, in few bytes.

A partition is `[topic, number, …]`, with the topic as an index of `topics`, for a group may have
100,000 of them. Times are ms since 1970 by the server's clock, rates bytes/s, lags records.
`/view` has

- `group`, `at_ms`, `state`, `controller`, `term`: as in `binwright status --json`, at `at_ms`.
- `problem`: null while the view is up to date, else its `kind` (`reading`, `missing`,
  `unreachable`) and `text`.
- `rates_age_s`, `rates_stale`: since the last measurement (null: none), and whether a newer one
  should be there.
- `limit`, `load`, `staging`, `lag`, `age_s`, `landed_rows`, `partitions`: of the whole group;
  `limit` is what a consumer sustains.
- `consumers`: each `slot`, `state`, `limit`, `load`, `staging`, `lag`, `silent_s`, `busy`,
  `capacity` (bytes/s that it could read; null: not measured yet), `lost_offsets`, `tables` that it
  writes, `partitions`: `[topic, number, rate or null, lag]`.
- `unread`: partitions that no consumer reads, in the same form.
- `hot`: partitions that get more than their consumer sustains: `[topic, number, rate, limit]`.
- `moves`: `[topic, number, old owner or null, new owner, phase]`.
- `tables`: each `name`, `topic`, `writer`, `state`, `age_s`, `pending_bytes`, `lag`, `rows`, `bad`
  (bad records, in their own table), `skipped` (records that are in no table, as the settings want),
  `commits`, `freshness_s` (age of the newest record that landed, or null), `fault`, `topics`,
  `new_fields` (of JSON, without a column), `appended` (why Spark writes its rows again; empty:
  staged files become its own), `compaction` (small files and what was merged of them, as in the
  message `TableCompaction`; null: none is merged), `registration` (its name in a catalog, as in the
  message `TableRegistration`; null: none is wanted), `operation` (the work that a person ordered
  last, and how far it is, as in the message `TableOperation`; null: none).
- `plan`: the last one: `age_s`, `reasons`, `consumers`, `moves`, `rscore`; or null.
- `proposal`: a plan that is shown and not carried out yet, by its number `plan`; besides, `waits`,
  `approved`, and `changes`: `[topic, number, old owner or null, new owner]`; or null.
- `takes_orders`: whether the page has the form for orders.
- `orders`, `held`: people's orders in force, and what the controller does not do because of
  orders or settings: a sentence each.
- `news`: the last 50 events: `[ms, text]`.
- `topics`: their names, any text.

`/history` has `points` of the last hour, one each `step_s`, with the values that `fields` names:
`at_ms`, `load`, `staging`, `limit` of all live consumers together, `consumers`, `lag`, `age_s`.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from binwright.look.group_view import GroupView
from binwright.look.order_text import order_text
from binwright.look.page.live_group import LiveGroup
from binwright.look.status import ConsumerStatus, ProposalStatus, Status
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
        "tables": [each.plain() for each in status.tables],
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


def _proposal(of: ProposalStatus, topics: _Topics) -> dict[str, Any]:
    changes = [[*topics.at(each.partition), each.old, each.new] for each in of.changes]
    return {name: getattr(of, name) for name in of.__slots__} | {"changes": changes}
