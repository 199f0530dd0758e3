"""What the build of Spark's image fetches by locks: the shipped script, with the Ivy of pyspark."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from tests.programs import ROOT, ProgramResult, run_program

from binwright.local.jars import pyspark_jars_dir
from binwright.local.java import find_java

CONTENT = {"a-1.jar": b"the jar of a", "delta-4.jar": b"the jar of delta"}
LOCK = """\
# organisation:name:revision size sha256

org.x:a:1 12 {a}
org.y:delta:{{delta-spark}} 16 {delta}
"""
SETTINGS = """<ivysettings>
  <settings defaultResolver="here"/>
  <resolvers>
    <filesystem name="here">
      <artifact pattern="{repository}/[artifact]-[revision].[ext]"/>
    </filesystem>
  </resolvers>
</ivysettings>
"""
FETCH_S = 300.0


async def fetch(directory: Path, content: dict[str, bytes]) -> ProgramResult:
    """Run it in a directory, for a repository with this content."""
    java = await find_java()
    repository = directory / "repository"
    repository.mkdir()
    for name, jar in content.items():
        (repository / name).write_bytes(jar)
    sums = {name.partition("-")[0]: hashlib.sha256(jar) for name, jar in CONTENT.items()}
    lock = LOCK.format(**{name: sum_.hexdigest() for name, sum_ in sums.items()})
    (directory / "x.lock").write_text(lock)
    (directory / "ivysettings.xml").write_text(SETTINGS.format(repository=repository))
    shutil.copy(ROOT / "deploy/spark/fetch-jars.sh", directory)
    variables = {
        "SPARK_HOME": str(pyspark_jars_dir().parent),
        "PATH": f"{java.binary.parent}:{os.environ['PATH']}",
    }
    command = ("bash", "fetch-jars.sh", "4", "x.lock")
    return run_program(*command, cwd=directory, environment=variables, timeout_s=FETCH_S)


async def test_the_jars_of_a_lock_are_fetched_and_no_others(tmp_path: Path) -> None:
    done = await fetch(tmp_path, {**CONTENT, "other-1.jar": b"not asked for"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert {each.name: each.read_bytes() for each in (tmp_path / "jars").iterdir()} == CONTENT


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"a-1.jar": b"the jar of b"}, "a-1.jar: FAILED"), ({"a-1.jar": None}, "a;1: not found")],
)
async def test_a_jar_that_is_another_one_or_missing_ends_it(
    tmp_path: Path, changed: dict[str, bytes | None], why: str
) -> None:
    content = {name: jar for name, jar in {**CONTENT, **changed}.items() if jar is not None}
    done = await fetch(tmp_path, content)
    assert done.returncode != 0
    assert why in done.stdout + done.stderr
