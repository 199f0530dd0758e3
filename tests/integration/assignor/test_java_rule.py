"""The assignor for Java gives bins to members by the same rule."""

import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from tests.fuzz.mutations import hostile
from tests.programs import run_program
from tests.scaler.decide.cases import CASES, by_rule
from tools.assignor_jar import NAME, RELEASE, SOURCES
from tools.java_jar import build_jar, compile_java

from binwright.local.kafka import ensure_kafka
from binwright.protocol.errors import MalformedMessage
from binwright.protocol.group_plans import decode_group_plan

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent


def line(owners: dict[str, str]) -> str:
    def order(name: str) -> tuple[str, int]:
        topic, _, number = name.rpartition("-")
        return topic, int(number)

    return " ".join(f"{p}={owners[p]}" for p in sorted(owners, key=order))


def drawn(number: int) -> dict[str, Any]:
    """Return a group with members, bins and owners drawn from this number."""
    draw = random.Random(number)
    partitions = {"a": draw.randint(1, 30), "b": draw.randint(0, 10)}
    names = [f"m-{n}" for n in range(draw.randint(1, 12))]
    every = [f"{topic}-{n}" for topic, count in partitions.items() for n in range(count)]
    owner = {p: draw.choice([*names, None]) for p in every}
    is_static = draw.random() < 0.3
    members = {
        name: {
            "topics": ["a", "b"] if draw.random() < 0.8 else ["a"],
            "owned": [p for p in every if owner[p] == name or draw.random() < 0.02],
            "generation": draw.randint(1, 3),
            **({"instance": f"pod{name}"} if is_static else {}),
        }
        for name in names
    }
    bins: list[dict[str, int]] = [{} for _ in range(draw.randint(0, 14))]
    for p in every if bins else ():
        if draw.random() < 0.9:
            draw.choice(bins)[p] = draw.randint(0, 1000)
    leaving = [name for name in [*names, "gone"] if draw.random() < 0.2]
    return {"bins": bins, "members": members, "partitions": partitions, "leaving": leaving}


async def printed(main: str, content: bytes, directory: Path, *options: str) -> list[str]:
    """Return the lines that a program of `java/` prints about a file with this content."""
    java, jars = await ensure_kafka(print)
    jar = build_jar(SOURCES, directory / NAME, jars, RELEASE)
    compile_java([HERE / "java" / f"{main}.java"], directory, [jar, *jars], RELEASE)
    file = directory / "content"
    file.write_bytes(content)
    classpath = ":".join(map(str, [directory, jar, *jars]))
    command = (
        str(java.binary),
        *options,
        "-cp",
        classpath,
        f"binwright.assignor.{main}",
        str(file),
    )
    result = run_program(*command, timeout_s=60)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


async def test_every_case_has_the_same_result_in_java(tmp_path: Path) -> None:
    cases = [*CASES, *map(drawn, range(500))]
    expected = [by_rule(case) for case in cases]
    assert await printed("RuleCases", orjson.dumps(cases), tmp_path) == [
        f"{line(one['target'])}|{line(one['assigned'])}" for one in expected
    ]


PLAN = {
    "group": "orders",
    "generation": 1,
    "at_ms": 5,
    "valid_ms": 600,
    "bins": [{"a-0": 100}],
    "reason": "a test",
    "kind": "group-plan/1",
}


async def test_a_record_without_a_load_or_a_group_is_no_plan_in_java_either(tmp_path: Path) -> None:
    """It is passed over when it is read: a load that is missing would fail each rebalance."""
    texts = [
        PLAN,
        {**PLAN, "bins": [{"a-0": None}]},
        {**PLAN, "bins": [{"a-0": 1.5}]},
        {**PLAN, "bins": [{"a": 100}]},
        {**PLAN, "bins": None},
        {**PLAN, "group": None},
        {**PLAN, "kind": "group-plan/2"},
        {**PLAN, "leaving": ["m-1"]},
        {**PLAN, "leaving": None},
        {**PLAN, "leaving": [1]},
    ]
    encoded = [orjson.dumps(text) for text in texts]
    found = await printed("PlanTexts", b"\n".join(encoded), tmp_path)
    assert found == ["true", *["false"] * 6, "true", "false", "false"]
    assert found == [str(is_plan(text)).lower() for text in encoded]


async def test_hostile_records_are_no_plans_in_java_and_cost_it_little(tmp_path: Path) -> None:
    """Its reader returns or refuses each of them, within 64 MB and a second for all."""
    drawn: list[bytes] = []

    @settings(max_examples=2_000, database=None)
    @given(hostile([orjson.dumps(PLAN)]))
    def draw(content: bytes) -> None:
        text = content.decode(errors="replace")
        drawn.append(("".join(text.splitlines()) + "\n").encode(errors="replace"))

    draw()
    found = await printed("PlanTexts", b"".join(drawn), tmp_path, "-Xmx64m")
    assert len(found) == len(drawn)
    assert {"true", "false"} == set(found)


def is_plan(payload: bytes) -> bool:
    try:
        decode_group_plan(payload)
    except MalformedMessage:
        return False
    return True
