"""Spark's image: its jars are those of the locks, and it serves without any network."""

import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from docker.client import DockerClient
from docker.models.containers import Container
from tests.deploy.compose.engine import SPARK
from tests.programs import ROOT, run_program
from tools.landing_jar import LOCK

from binwright.local.jars import locked_jars
from binwright.local.spark import LANDING_JAR, TOKEN_VARIABLE

from .conftest import REVISION, Image

pytestmark = pytest.mark.images

READY_S, QUERY_S = 300.0, 300.0
TOKEN = "of-this-test"  # noqa: S105
JARS = "/opt/spark/jars"
DELTA_TABLE = """
from pyspark.sql.connect.session import SparkSession
spark = SparkSession.builder.remote("sc://localhost:15002").getOrCreate()
spark.sql("CREATE TABLE delta.`/tmp/table` USING delta AS SELECT id FROM range(7)").collect()
print("rows", spark.sql("SELECT count(*) FROM delta.`/tmp/table`").collect()[0][0])
"""


def pod() -> dict[str, Any]:
    """Return the pod of the shipped Deployment."""
    documents = yaml.safe_load_all((ROOT / "deploy/spark/spark.yaml").read_text())
    found: dict[str, Any] = next(documents)["spec"]["template"]["spec"]
    return found


@pytest.fixture(scope="module")
def server(client: DockerClient, spark_image: Image) -> Iterator[Container]:
    """A container as in the manifest, which has the loopback and nothing else.

    It knows its own name, as a pod does by its hosts file.
    """
    shipped = pod()
    spark = shipped["containers"][0]
    variables = {each["name"]: each["value"] for each in spark["env"] if "value" in each}
    variables[TOKEN_VARIABLE] = TOKEN
    user = shipped["securityContext"]["runAsUser"]
    volumes = [m["mountPath"] for m in spark["volumeMounts"] if m["name"] in {"tmp", "work"}]
    arguments = [expanded(each, variables) for each in spark["args"]]
    running = client.containers.run(
        spark_image.name,
        arguments,
        entrypoint=spark["command"],
        environment=variables,
        user=f"{user}:{user}",
        read_only=spark["securityContext"]["readOnlyRootFilesystem"],
        cap_drop=spark["securityContext"]["capabilities"]["drop"],
        security_opt=["no-new-privileges"],
        tmpfs=dict.fromkeys(volumes, f"exec,uid={user},gid={user}"),
        network_mode="none",
        hostname="localhost",
        detach=True,
    )
    try:
        wait_until_it_serves(running, spark["readinessProbe"]["exec"]["command"])
        yield running
    finally:
        running.remove(force=True)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], text)


def wait_until_it_serves(server: Container, probe: list[str]) -> None:
    deadline = time.monotonic() + READY_S
    while server.exec_run(probe).exit_code:
        server.reload()
        assert server.status == "running", server.logs(tail=50).decode()
        assert time.monotonic() < deadline, server.logs(tail=50).decode()
        time.sleep(0.5)


def test_it_starts_without_a_network_and_writes_a_delta_table(server: Container) -> None:
    """The client is a process of this machine in the container's network."""
    if os.geteuid() != 0:
        pytest.skip("only root enters a container's network")
    server.reload()
    network = f"--net=/proc/{server.attrs['State']['Pid']}/ns/net"
    done = run_program(
        *("nsenter", network, sys.executable, "-c", DELTA_TABLE),
        environment={TOKEN_VARIABLE: TOKEN},
        timeout_s=QUERY_S,
    )
    assert done.returncode == 0, done.stderr + server.logs(tail=50).decode()
    assert done.stdout.splitlines()[-1] == "rows 7"
    interfaces = server.exec_run(["bash", "-c", "cat /proc/net/dev"]).output.decode()
    assert re.findall(r"^ *(\w+):", interfaces, re.MULTILINE) == ["lo"]


def test_its_jars_are_those_of_its_base_and_of_the_locks(
    client: DockerClient, spark_image: Image
) -> None:
    def sums(image: str) -> dict[str, str]:
        command = ["bash", "-c", f"cd {JARS} && sha256sum *.jar"]
        output = client.containers.run(image, command, entrypoint="", remove=True).decode()
        return {name: sum_ for sum_, name in (line.split() for line in output.splitlines())}

    added = sums(spark_image.name).items() - sums(SPARK).items()
    locked = {(jar.file_name, jar.sha256) for lock in ("delta", "s3") for jar in locked_jars(lock)}
    locked |= {
        (name, sum_)
        for sum_, name in map(str.split, LOCK.read_text().splitlines())
        if name == LANDING_JAR.name
    }
    assert added == locked


def test_it_runs_as_spark_s_user_with_the_labels_of_the_others(
    client: DockerClient, spark_image: Image
) -> None:
    described = client.images.get(spark_image.name).attrs["Config"]
    assert described["User"] == "185:185"
    assert described["Labels"]["org.opencontainers.image.title"] == "binwright-spark"
    assert described["Labels"]["org.opencontainers.image.revision"] == REVISION


def test_the_settings_in_it_are_the_shipped_ones(spark_image: Image) -> None:
    file = ROOT / "apps/binwright/local/spark-defaults.conf"
    name = PurePosixPath("/opt/binwright") / file.name
    code, output = spark_image.run(str(name), entrypoint="sha256sum")
    assert code == 0, output
    assert output.split()[0] == hashlib.sha256(file.read_bytes()).hexdigest()
