"""Each question of `docs/how-to/status.md`, asked of a live system by the page's own command.

What the answer says is compared with what the group decided by: the messages of its topics, the
logs of its tables, and the ends of Kafka's logs.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.docs.pages import ROOT
from tests.integration.conftest import BackgroundLoop
from tests.integration.landing import rows
from tests.integration.questions.live_system import (
    BAD,
    BILLS,
    CLICKS,
    GOOD,
    GROUP,
    PAYMENTS,
    WAITING,
    LiveSystem,
    Topics,
    claimed_limit,
    lines,
    live_system,
    orders_of,
)

from binwright.cli.terminal import data_size
from binwright.protocol.metadata import Held
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

PAGE = ROOT / "docs" / "how-to" / "status.md"
SHARE = 25 / 30  # of the limit that a plan gives a consumer


def page_commands() -> dict[str, str]:
    """Return the page's questions: how each begins -> its command."""
    row = re.compile(r"^\| ([A-Z][^|]+\?) \| `binwright ([^`]+)` \|$", re.MULTILINE)
    return dict(row.findall(PAGE.read_text()))


QUESTIONS = page_commands()


@pytest.fixture(scope="module")
def system(
    background_loop: BackgroundLoop,
    broker: str,
    spark_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LiveSystem]:
    """The group that runs, with everything that is asked about."""
    directory = tmp_path_factory.mktemp("asked")
    with background_loop.entered(live_system(broker, spark_url, directory)) as running:
        yield running


async def ask(
    system: LiveSystem, question: str, changes: Mapping[str, str] | None = None
) -> tuple[int, Any, str]:
    """Ask by the page's command, changed at these places; return its exit code, JSON and text."""
    (command,) = (each for start, each in QUESTIONS.items() if start.startswith(question))
    for place, change in (changes or {}).items():
        assert place in command
        command = command.replace(place, change)
    command = re.sub(r"\b(clicks|payments|bills)\b", rf"{GROUP}-\1", command)
    code, out = await system.run(*shlex.split(command), "--json")
    return code, json.loads(out), out


def loads(topics: Topics, partitions: set[TopicPartition]) -> set[str]:
    """Return what these partitions get in all, in words, by each recent measurement."""
    recent = [m.rates() for m in topics.measurements if m.topic == CLICKS][-60:]
    return {data_size(sum(rates.get(p, 0.0) for p in partitions)) for rates in recent}


def mentioned(text: str, sizes: set[str]) -> bool:
    return any(f"{size}/s" in text for size in sizes)


def test_the_page_has_ten_questions_and_each_is_asked_here() -> None:
    text = Path(__file__).read_text()
    asked = re.findall(r'ask\(\s*system, "([^"]+)"', text)
    assert len(QUESTIONS) == len(asked) == 10
    assert all(any(each.startswith(start) for start in asked) for each in QUESTIONS)


async def test_why_there_are_so_many_consumers(system: LiveSystem) -> None:
    _, _, answer = await ask(system, "Why are there so many consumers")
    topics = await system.topics()
    number, plan = topics.plans()[-1]
    (size,) = lines(answer, "is")
    limit = claimed_limit(topics)
    assert f"read by {len(set(plan.targets.values()))} consumers" in size
    assert plan.consumers == 2
    assert f"sustains {data_size(limit)}/s (as set)" in size
    assert f"up to {data_size(limit * SHARE)}/s" in size
    assert mentioned(size, loads(topics, set(plan.targets)))
    (why,) = lines(answer, "why")
    assert why.startswith(f"plan {number}, ")
    assert why.endswith("; ".join(plan.reasons))
    assert f"the load needs {plan.consumers} consumers at least" in lines(answer, "otherwise")[0]


async def test_why_a_partition_moved_and_where_from(system: LiveSystem) -> None:
    *_, (_, before), (number, plan) = (await system.topics()).plans()
    partition, owner = min(plan.moves.items())
    name = f"clicks-{partition.partition}"
    _, _, answer = await ask(system, "Why did this partition move", {"clicks-3": name})
    (why,) = lines(answer, "why")
    assert why.startswith(f"plan {number}, ")
    assert f"gave it to consumer {owner}, from consumer {before.targets[partition]}: " in why
    assert why.endswith("; ".join(plan.reasons))
    (where,) = lines(answer, "is")
    topics = await system.topics()
    assert mentioned(where, loads(topics, {partition}))
    mine = {p for p, each in plan.targets.items() if each == owner}
    assert mentioned(where, loads(topics, mine))


async def test_what_it_would_cost_to_spare_a_consumer(system: LiveSystem) -> None:
    _, plan = (await system.topics()).plans()[-1]
    consumer = next(iter(plan.moves.values()))
    changes = {"explain 1": f"explain {consumer}"}
    _, _, answer = await ask(system, "What would it cost", changes)
    (cost,) = lines(answer, "otherwise")
    topics = await system.topics()
    own = {p for p, owner in plan.targets.items() if owner == consumer}
    others = set(plan.targets) - own
    assert cost.startswith("it cannot be spared: ")
    assert mentioned(cost.partition(", the others")[0], loads(topics, own))
    capacity = claimed_limit(topics) * SHARE
    recent = [m.rates() for m in topics.measurements if m.topic == CLICKS][-60:]
    rooms = {
        data_size(max(0.0, capacity - sum(rates.get(p, 0.0) for p in others))) for rates in recent
    }
    assert mentioned(cost.partition("have room for ")[2], rooms)
    assert cost.endswith("the load needs 2 consumers at least")


async def test_what_holds_the_group_back(system: LiveSystem) -> None:
    _, groups, _ = await ask(system, "What holds the group back")
    (group,) = (each for each in groups if each["group"] == GROUP)
    reported = [list(m.reasons) for _, m in (await system.topics()).metadata if isinstance(m, Held)]
    assert group["held"] in reported
    assert any("'release'; waits: 2 of 3 consumers read" in reason for reason in group["held"])


async def test_who_ordered_it_and_why(system: LiveSystem) -> None:
    _, found, _ = await ask(system, "Who ordered that")
    given = orders_of(await system.topics())
    assert {each["about"] for each in found["orders"]} == given.keys()
    for each in found["orders"]:
        order = given[each["about"]]
        assert (each["by"], each["reason"]) == (order.by, order.reason)
        assert (each["at_ms"], each["until_ms"]) == (order.at_ms, order.until_ms)


async def test_why_a_table_is_late(system: LiveSystem) -> None:
    _, _, answer = await ask(system, "Why is this table late")
    topics = await system.topics()
    report = topics.reports(BILLS)[-1]
    table = report.writing[BILLS]
    (state,) = lines(answer, "is")
    assert state.startswith(f"paused; consumer {report.slot} writes it; ")
    assert table.committed == {TopicPartition(BILLS, 0): 1}
    assert f"{WAITING} records have not landed" in state
    assert f"{data_size(table.pending_bytes)} of them are staged" in state
    (why,) = lines(answer, "why")
    assert why == f"a person has paused it: {table.fault}"
    assert "a repair" in why


async def test_which_records_are_bad_and_why(system: LiveSystem) -> None:
    _, found, _ = await ask(system, "Which records are bad")
    landed = rows(system.lake, PAYMENTS + BAD_SUFFIX)
    by_offset = {each.pop("offset"): each for each in found["table"]["bad_records"]}
    assert by_offset == {
        row["_kafka"]["offset"]: {"partition": 0, "kind": row["kind"], "reason": row["reason"]}
        for row in landed
    }
    assert by_offset.keys() == {len(GOOD), len(GOOD) + 1}
    assert "id" in by_offset[len(GOOD) + 1]["reason"]
    assert found["table"]["bad_kinds"] == {"incompatible": 1, "malformed": 1}


async def test_whether_anything_is_lost_or_doubled(system: LiveSystem) -> None:
    code, found, _ = await ask(system, "Is anything lost")
    records = len(GOOD) + len(BAD)
    assert (code, found["clean"]) == (0, True)
    assert (found["rows"], found["bad"]) == (records, len(BAD))
    assert len(rows(system.lake, PAYMENTS)) == len(GOOD)
    (table,) = found["tables"]
    assert [each["end"] for each in table["partitions"]] == [records, 0]


async def test_what_happens_if_the_schema_changes(system: LiveSystem, tmp_path: Path) -> None:
    wanted = tmp_path / "new.txt"
    wanted.write_text("id STRING, item STRING, payload VARIANT, price DECIMAL(10,2)")
    code, found, _ = await ask(system, "What happens if the schema", {"new.txt": str(wanted)})
    assert code == 1
    fields = json.loads(DeltaTable(str(system.lake / PAYMENTS)).schema().to_json())["fields"]
    assert {each["name"]: each["type"] for each in fields}["id"] == "long"
    assert found == [
        {"column": "id", "kind": "refused", "there": "bigint", "wanted": "string"},
        {"column": "price", "kind": "added", "there": None, "wanted": "decimal(10,2)"},
    ]


async def test_which_programs_cannot_read_it(system: LiveSystem) -> None:
    _, found, _ = await ask(system, "Which programs cannot read it")
    path = str(system.lake / PAYMENTS)
    protocol = DeltaTable(path).protocol()
    assert found["table"]["reader_version"] == protocol.min_reader_version
    assert found["table"]["reader_features"] == sorted(protocol.reader_features or ())
    assert found["table"]["shut_out"] == [
        "Spark before 4.0",
        "Polars",
        "deltalake, but for the encoded bytes",
    ]
    payloads = [row["payload"] for row in rows(system.lake, PAYMENTS) if row["payload"]]
    assert [each.keys() for each in payloads] == [{"metadata", "value"}]
