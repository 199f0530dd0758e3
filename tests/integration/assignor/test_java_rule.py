"""The assignor for Java gives bins to members by the same rule."""

import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.assignor_jar import build_jar, compile_java
from tests.core.steering.cases import CASES, by_rule
from tests.programs import run_program

from binwright.embedded.kafka.broker import ensure_kafka

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
    return {"bins": bins, "members": members, "partitions": partitions}


async def test_every_case_has_the_same_result_in_java(tmp_path: Path) -> None:
    java, jars = await ensure_kafka(print)
    jar = build_jar(tmp_path, jars)
    compile_java([HERE / "java" / "RuleCases.java"], tmp_path, [jar, *jars])
    cases = [*CASES, *map(drawn, range(500))]
    (tmp_path / "cases.json").write_bytes(orjson.dumps(cases))
    classpath = ":".join(map(str, [tmp_path, jar, *jars]))
    file = str(tmp_path / "cases.json")
    main = "binwright.assignor.RuleCases"
    result = run_program(str(java.binary), "-cp", classpath, main, file, timeout_s=60)
    assert result.returncode == 0, result.stderr
    expected = [by_rule(case) for case in cases]
    assert result.stdout.splitlines() == [
        f"{line(one['target'])}|{line(one['assigned'])}" for one in expected
    ]
