"""One file of settings serves the embedded Spark, compose and the Kubernetes manifests."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from binwright.local.spark import (
    LANDING_JAR,
    SHIPPED,
    Master,
    classpath,
    cluster_settings,
    default_settings,
    shipped_settings,
)
from binwright.local.spark_size import SparkSize

ROOT = Path(__file__).parents[2]
NAME = SHIPPED.name
MOUNTED = f"/opt/binwright/{NAME}"
TEXT = SHIPPED.read_text(encoding="utf-8")


def manifest(kind: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((ROOT / "deploy/spark/spark.yaml").read_text())
    return next(each for each in documents if each["kind"] == kind)


def test_the_manifests_carry_the_same_file() -> None:
    assert manifest("ConfigMap")["data"] == {NAME: TEXT}


def test_the_pod_starts_with_that_file() -> None:
    pod = manifest("Deployment")["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["mountPath"]: each["name"] for each in pod["containers"][0]["volumeMounts"]}
    source = volumes[mounts[str(Path(MOUNTED).parent)]]["configMap"]["name"]
    assert source == manifest("ConfigMap")["metadata"]["name"]
    assert MOUNTED in pod["containers"][0]["args"]


def test_the_image_has_the_file_and_compose_starts_with_it() -> None:
    dockerfile = (ROOT / "deploy/spark/Dockerfile").read_text()
    assert f"COPY apps/binwright/local/{NAME} {MOUNTED}\n" in dockerfile
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["spark"]
    assert service["build"]["dockerfile"] == "deploy/spark/Dockerfile"
    command = service["command"]
    assert command[command.index("--properties-file") + 1] == MOUNTED


def test_the_embedded_server_has_all_of_them_but_encryption_to_itself() -> None:
    settings = default_settings(Path("/home/s"), 1, 2)
    assert shipped_settings().items() - settings.items() == {
        ("spark.network.crypto.enabled", "true")
    }
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.master"] == "local[2]"


def test_each_setting_is_named_once() -> None:
    lines = [line for line in TEXT.splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(shipped_settings())
    assert all(
        key.startswith("spark.") for key in shipped_settings()
    )  # spark-submit ignores others


@pytest.mark.parametrize("key", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_a_staged_file_that_is_lost_fails_the_commit(key: str) -> None:
    """Rows of a skipped file would be missing under a stamp that says they landed."""
    assert shipped_settings()[f"spark.sql.files.{key}"] == "false"


def test_nothing_in_the_file_depends_on_the_machine() -> None:
    own = ("spark.master", "spark.driver.", "spark.local.dir", "spark.connect.grpc.binding.")
    named = {key for key in shipped_settings() if key.startswith(own)}
    assert named == {"spark.driver.extraJavaOptions"}


def test_embedded_compose_s_and_the_manifests_servers_have_one_heap() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    (spark, _) = manifest("Deployment")["spec"]["template"]["spec"]["containers"]
    values = yaml.safe_load((ROOT / "deploy/helm/binwright/values.yaml").read_text())
    heap = f"spark.driver.memory={SparkSize().heap}"
    assert heap in services["spark"]["command"]
    assert heap in spark["args"]
    assert values["spark"]["driverMemory"] == SparkSize().heap


def test_executors_take_deltas_jars_from_where_they_are() -> None:
    settings = cluster_settings(
        Master("spark://127.0.0.1:1", "s"), (Path("/a.jar"), Path("/b.jar"))
    )
    assert settings["spark.master"] == "spark://127.0.0.1:1"
    assert settings["spark.executor.extraClassPath"] == "/a.jar:/b.jar"
    assert cluster_settings(None, ()) == {}


def test_the_embedded_server_and_the_image_have_the_extension_that_the_settings_name() -> None:
    assert LANDING_JAR in classpath((Path("/delta.jar"),))
    assert LANDING_JAR.is_file()
    dockerfile = (ROOT / "deploy/spark/Dockerfile").read_text()
    assert f"COPY apps/binwright/local/{LANDING_JAR.name} jars/\n" in dockerfile


def test_spark_leaves_its_traces_in_its_directory() -> None:
    settings = default_settings(Path("/home/s"), 1, 2)
    assert settings["spark.local.dir"] == "/home/s/tmp"
    assert settings["spark.sql.warehouse.dir"] == "/home/s/warehouse"
    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
