"""What Ivy is told, and what is understood of what it says."""

from xml.etree import ElementTree as ET

import pytest

from binwright.local.java.ivy import failure_reason, module_file, proxy_flags
from binwright.local.java.jars import Artifact

OUTPUT = """
:::: ERRORS
\tServer access error at url http://x/a.pom (java.net.ConnectException: Connection refused)

\tServer access error at url http://x/a.jar (java.net.ConnectException: Connection refused)
"""


def test_the_module_asks_for_exactly_the_jars() -> None:
    plain = Artifact("org.x", "a&b", "1.0", "", 1, "0" * 64)
    classified = Artifact("org.x", "c", "2", "linux", 1, "0" * 64)
    dependencies = ET.fromstring(module_file([plain, classified])).findall(".//dependency")  # noqa: S314
    assert [d.attrib["name"] for d in dependencies] == ["a&b", "c"]
    assert {d.attrib["transitive"] for d in dependencies} == {"false"}
    artifact = dependencies[1].find("artifact")
    assert artifact is not None
    assert artifact.attrib["{http://ant.apache.org/ivy/extra}classifier"] == "linux"


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ({}, ()),
        (
            {"HTTPS_PROXY": "http://me:secret@proxy.here:3128"},
            ("-Dhttps.proxyHost=proxy.here", "-Dhttps.proxyPort=3128"),
        ),
        ({"http_proxy": "http://proxy.here"}, ("-Dhttp.proxyHost=proxy.here",)),
    ],
)
def test_java_gets_the_proxies(environment: dict[str, str], flags: tuple[str, ...]) -> None:
    assert proxy_flags(environment) == flags


def test_ivys_error_is_reported_once() -> None:
    assert failure_reason(OUTPUT) == "java.net.ConnectException: Connection refused"
    assert failure_reason("module not found: org.x#a;1.0") == ""
