"""The committed extension of Spark servers is what its sources give, for the Spark that runs it."""

import re
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.programs import run_program
from tools.java_jar import compile_java, jdk_program
from tools.landing_jar import (
    LINT,
    LOCK,
    RELEASE,
    SOURCES,
    build_landing_jar,
    javac_of_17,
    lock_text,
)

from binwright.local.java import find_java
from binwright.local.server import no_progress
from binwright.local.spark import (
    LANDING_JAR,
    classpath,
    delta_jars,
    shipped_settings,
    spark_flags,
)

JAVA_S = 60.0
NEEDS_JDK = pytest.mark.skipif(not javac_of_17(), reason="there is no javac of 17")
VERDICT = """
package binwright.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.unsafe.types.UTF8String;

public final class Verdict {
    public static void main(String[] none) {
        UTF8String text = UTF8String.fromString("nothing");
        Object[] files = {};
        Object[] input = {text, text, text, new GenericArrayData(files)};
        LocalScan scan = (LocalScan) new AddFiles().call(new GenericInternalRow(input)).next();
        InternalRow row = scan.rows()[0];
        System.out.println(row.getString(0) + ": " + row.getString(3));
    }
}
"""
REASON = """
package binwright.spark;
public final class Reason {
    public static void main(String[] versions) {
        System.out.println(
            versions.length == 0
                ? Versions.reasonAgainst()
                : Versions.reasonAgainst(versions[0], versions[1]));
    }
}
"""


def test_the_lock_has_the_sums_of_the_jar_and_of_its_sources_as_they_are() -> None:
    """After a change of the sources: `python -m tools.landing_jar`."""
    assert LOCK.read_text() == lock_text(LANDING_JAR)


def test_it_is_for_the_spark_and_the_delta_that_are_installed() -> None:
    text = (SOURCES / "binwright/spark/Versions.java").read_text()
    constants = dict(re.findall(r'String (\w+) = "([^"]+)"', text))
    assert constants["DELTA"] == version("delta-spark")
    assert version("pyspark").rpartition(".")[0] in re.findall(r"[0-9.]+", constants["SPARK"])


def test_the_settings_name_a_class_of_it() -> None:
    name = shipped_settings()["spark.sql.catalog.binwright"]
    assert (SOURCES / f"{name.replace('.', '/')}.java").exists()


@NEEDS_JDK
@pytest.mark.integration
async def test_its_sources_give_the_same_bytes(tmp_path: Path) -> None:
    await build_landing_jar(tmp_path / LANDING_JAR.name)
    assert (tmp_path / LANDING_JAR.name).read_bytes() == LANDING_JAR.read_bytes()


@NEEDS_JDK
@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (("4.4.0", "4.2.0"), ()),
        (("4.4.0", "4.0.12"), ()),
        (("4.4.0", "4.3.0"), ("Delta 4.4.0 on Spark 4.3.0", "on Spark 4.0, 4.1 or 4.2")),
        (("4.4.0", "4.20.0"), ("on Spark 4.20.0",)),
        (("4.3.1", "4.2.0"), ("Delta 4.3.1 on Spark 4.2.0", "Delta 4.4.0 on Spark 4.0")),
        (("4.4.0", "4.2.0-vendor"), ("Delta 4.4.0 on Spark 4.2.0-vendor", "for Delta 4.4.0 on")),
        ((), ("Delta of an unknown version on Spark of an unknown version",)),
    ],
)
def test_a_server_of_other_versions_is_named_with_both(
    versions: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    source = tmp_path / "Reason.java"
    source.write_text(REASON)
    compile_java([source], tmp_path, [LANDING_JAR], RELEASE)
    classes = f"{tmp_path}:{LANDING_JAR}"
    java = (jdk_program("java"), "-Xshare:auto", "-cp", classes, "binwright.spark.Reason")
    done = run_program(*java, *versions, timeout_s=JAVA_S)
    assert done.returncode == 0, done.stderr
    if expected:
        assert all(part in done.stdout for part in expected)
    else:
        assert done.stdout.strip() == "null"


@NEEDS_JDK
@pytest.mark.integration
@pytest.mark.parametrize(
    ("lacks", "expected"),
    [
        ("Delta", "this server has Delta of an unknown version on Spark 4.2.0"),
        ("a class", "this server has no unchanged Delta 4.4.0 on Spark 4.0, 4.1 or 4.2"),
    ],
)
async def test_where_classes_are_missing_it_replies_so_and_throws_nothing(
    lacks: str, expected: str, tmp_path: Path
) -> None:
    jar = tmp_path / LANDING_JAR.name
    with ZipFile(LANDING_JAR) as whole, ZipFile(jar, "w") as part:
        for name in whole.namelist():
            if lacks == "Delta" or not name.endswith("/Landing.class"):
                part.writestr(name, whole.read(name))
    delta = await delta_jars(await find_java(), no_progress)
    jars = [each for each in classpath(() if lacks == "Delta" else delta) if each != LANDING_JAR]
    source = tmp_path / "Verdict.java"
    source.write_text(VERDICT)
    compile_java([source], tmp_path, [LANDING_JAR, *jars], RELEASE, LINT)
    (tmp_path / "tmp").mkdir()
    classes = ":".join(map(str, (tmp_path, jar, *jars)))
    java = (jdk_program("java"), *spark_flags(tmp_path), "-cp", classes, "binwright.spark.Verdict")
    done = run_program(*java, timeout_s=JAVA_S)
    assert done.returncode == 0, done.stderr
    assert f"table_not_in_place: {expected}" in done.stdout
