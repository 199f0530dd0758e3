"""What `doctor` and the page call tested is what tests run on."""

from importlib.metadata import version

from tests.docs.pages import ROOT
from tests.integration.versions.servers import KAFKAS, SPARKS

from binwright.inspect.decide.doctor import brokers, lake
from binwright.local.jars import locked_jars

PAGE = ROOT / "docs" / "how-to" / "versions.md"
(EMBEDDED,) = (jar.revision for jar in locked_jars("kafka") if jar.name == "kafka-clients")
SPARK = f"{version('pyspark')}+{version('delta-spark')}"


def releases(versions: list[str]) -> set[str]:
    return {each.rpartition(".")[0] for each in versions}


def test_doctor_names_none_but_releases_that_tests_run_on() -> None:
    assert {*brokers.TESTED} <= releases([*KAFKAS, EMBEDDED])
    assert {*lake.TESTED} <= releases([each.partition("+")[0] for each in (*SPARKS, SPARK)])


def test_the_page_has_a_row_for_each_version() -> None:
    page = PAGE.read_text()
    assert [each for each in (*KAFKAS, EMBEDDED) if f"| {each} |" not in page] == []
    pairs = [f"| {' | '.join(each.split('+'))} |" for each in (*SPARKS, SPARK)]
    assert [each for each in pairs if each not in page] == []
