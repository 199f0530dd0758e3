"""What the hooks do in a process that chaos starts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.chaos.aimed_points import aimed_points
from tests.chaos.fault_schedule import EVOLUTION_STEPS, STEPS, Fault, Kind

PROCESS_S = 120.0
WRAPPED = """
import sys
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.consumer.land.lake import delta
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.consumer.stage.file_staging import FileStaging
owners = {"lake": SparkLake, "registry": SchemaRegistry, "offsets": KafkaDataReader,
          "staging": FileStaging}
found = [f"{prefix}.{name}" for prefix, owner in owners.items()
         for name, each in vars(owner).items() if hasattr(each, "__wrapped__")]
if hasattr(delta.missing_columns, "__wrapped__"):
    found.append("delta.alter")
print(*found)
"""
ALTERS = """
from binwright.consumer.land.lake import delta
from binwright.tables.columns import parse_columns
from pyspark.sql.types import LongType, StructField, StructType
there = StructType([StructField("id", LongType())])
delta.missing_columns("p", parse_columns("id BIGINT"), there)
print("nothing to alter", flush=True)
delta.missing_columns("p", parse_columns("id BIGINT, item STRING"), there)
print("to alter", flush=True)
"""
COMMITS = """
import asyncio, sys
from binwright.consumer.land.lake.spark_lake import SparkLake
commit = getattr(SparkLake, sys.argv[2])
print("to commit", flush=True)
asyncio.run(commit(None, "orders", None, "", ""))
"""
QUICK = """
import asyncio, sitecustomize
class Lake:
    async def append(self):
        print("begun", flush=True)
        await asyncio.sleep(0.05)
        print("ended", flush=True)
sitecustomize.wrap(Lake, "append", "consumer", lambda _: "lake.commit", "lake.append")
async def main():
    await Lake().append()
    await Lake().append()
asyncio.run(main())
"""


def process(directory: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code as a consumer of chaos."""
    variables = os.environ | aimed_points(directory).environment()
    return subprocess.run(
        (sys.executable, "-c", code, "binwright.consumer", *arguments),
        env=variables,
        capture_output=True,
        text=True,
        timeout=PROCESS_S,
        check=False,
    )


def alter(failure_mode: str) -> Fault:
    step = {"service": "consumer", "step": "delta.alter", "moment": "before"}
    return Fault(kind=Kind.AIMED, pick=0, duration_s=0.0, failure_mode=failure_mode, **step)


def test_every_call_that_a_fault_may_aim_at_is_wrapped(tmp_path: Path) -> None:
    done = process(tmp_path, WRAPPED)
    assert done.returncode == 0, done.stderr
    wanted = {step for _, step, _ in (*STEPS, *EVOLUTION_STEPS) if "." in step}
    wanted |= {"lake.append", "lake.add_files"}
    assert wanted - {"table.claimed", "table.resolved", "lake.commit"} <= {*done.stdout.split()}


def test_a_process_ends_itself_before_it_alters_a_table_and_not_where_nothing_is_to_alter(
    tmp_path: Path,
) -> None:
    points = aimed_points(tmp_path)
    points.arm(alter("kill"))
    done = process(tmp_path, ALTERS)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "nothing to alter\n"), done.stderr
    hit = points.hit()
    assert hit is not None
    assert hit.call == "delta.alter"


def commit(moment: str) -> Fault:
    step = {"service": "consumer", "step": "lake.commit", "moment": moment}
    return Fault(kind=Kind.AIMED, pick=0, duration_s=0.0, failure_mode="kill", **step)


@pytest.mark.parametrize("call", ["append", "add_files"])
def test_a_commit_is_hit_whichever_way_a_batch_lands_and_which_way_is_known(
    tmp_path: Path, call: str
) -> None:
    points = aimed_points(tmp_path)
    points.arm(commit("before"))
    done = process(tmp_path, COMMITS, call)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "to commit\n"), done.stderr
    hit = points.hit()
    assert hit is not None
    assert hit.call == f"lake.{call}"


def test_a_commit_that_is_too_quick_to_be_hit_lets_the_next_one_be(tmp_path: Path) -> None:
    points = aimed_points(tmp_path)
    points.arm(commit("during"))
    done = process(tmp_path, QUICK)
    assert done.stdout == "begun\nended\nbegun\n", done.stderr
    assert done.returncode == -signal.SIGKILL
    assert points.hit() is not None


@pytest.mark.parametrize("mode", ["kill_spark", "kill_registry"])
def test_a_server_is_struck_instead_of_the_process_that_comes_to_the_step(
    tmp_path: Path, mode: str
) -> None:
    points = aimed_points(tmp_path)
    with subprocess.Popen(["sleep", str(PROCESS_S)]) as server:
        try:
            points.arm(alter(mode), server.pid)
            done = process(tmp_path, ALTERS)
            assert (done.returncode, done.stdout) == (0, "nothing to alter\nto alter\n")
            assert server.wait(PROCESS_S) == -signal.SIGKILL
        finally:
            server.kill()


def test_what_is_aimed_at_is_whole_in_the_file(tmp_path: Path) -> None:
    aimed_points(tmp_path).arm(alter("kill_spark"), 7)
    assert json.loads((tmp_path / "aim").read_text()) == {
        "service": "consumer",
        "step": "delta.alter",
        "moment": "before",
        "failure_mode": "kill_spark",
        "server": 7,
    }
