"""What integration tests show on the embedded servers, they show on others: a pytest for each.

What is left out on a server is a test that says so itself, with the reason.
"""

import re
import sys
from pathlib import Path

import pytest
from tests.integration.versions.servers import KAFKA, KAFKAS, SPARK, SPARKS, spark_jars
from tests.programs import run_program
from tools.java_jar import build_jar
from tools.landing_jar import LINT, RELEASE, SOURCES, javac_of_17

from binwright.local.spark import LANDING_JAR

pytestmark = pytest.mark.integration

RUN_S = 1_150.0
DONE = re.compile(r"\d+ passed.* in .*")

OF_KAFKA = (
    "versions",
    "assignor/test_aiokafka_group.py",
    "assignor/test_console_consumer.py",
    "assignor/test_java_group.py",
    "audit",
    "control_topics",
    "intake/test_reading.py",
    "test_controls.py",
    "test_doctor.py",
    "test_election.py",
    "test_failover.py",
    "test_leaders.py",
    "test_monitor.py",
    "test_moves.py",
    "test_scaler.py",
    "test_stable_ends.py",
    "test_targets.py",
)
"""What services, the scaler and commands ask of a broker."""
OF_KAFKA_4 = ("assignor/test_broker_assignor.py",)
"""What groups of KIP-848 ask."""
OF_SPARK = (
    "versions",
    "audit",
    "lake",
    "test_erase.py",
    "test_masks.py",
    "test_new_columns.py",
    "test_record.py",
    "test_replay.py",
    "test_warm_up.py",
    "test_writer.py",
)
"""What writers, audits and commands ask of Spark and Delta."""


def passes(variable: str, version: str, places: tuple[str, ...]) -> None:
    """Run tests of integration on a version; print how many passed."""
    done = run_program(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *(f"tests/integration/{place}" for place in places),
        timeout_s=RUN_S,
        environment={variable: version},
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    sys.stdout.write(f"{variable} {version}: {DONE.findall(done.stdout)[-1]}\n")


@pytest.mark.parametrize("version", KAFKAS)
def test_all_that_needs_a_broker_works_on_it(version: str) -> None:
    passes(KAFKA, version, OF_KAFKA if version < "4" else (*OF_KAFKA, *OF_KAFKA_4))


@pytest.mark.parametrize("versions", SPARKS)
def test_all_that_needs_spark_works_on_it(versions: str) -> None:
    passes(SPARK, versions, OF_SPARK)


@pytest.mark.skipif(not javac_of_17(), reason="there is no javac of 17")
@pytest.mark.parametrize("versions", [each for each in SPARKS if each.endswith("+4.4.0")])
async def test_the_extension_is_the_same_built_for_it(versions: str, tmp_path: Path) -> None:
    jars = await spark_jars(versions)
    built = build_jar(SOURCES, tmp_path / LANDING_JAR.name, jars, RELEASE, LINT)
    assert built.read_bytes() == LANDING_JAR.read_bytes()
