"""What a person's machine may have in store for the embedded servers."""

from pathlib import Path

import pytest


@pytest.fixture
def hostile_environment(
    broker: str,  # noqa: ARG001 - the session's servers first: they fetch the jars, by a Java that
    spark_url: str,  # noqa: ARG001 - must heed the person's options, a proxy's among them
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Settings of the person's own Java, Spark and Kafka, none of which our servers could bear."""
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.setenv(name, "-Xno-such-option")
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "CLASSPATH", "LOG_DIR"):
        monkeypatch.setenv(name, "/no/such/place")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/proc/nowhere")


@pytest.fixture
def only_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java but the one that pip brought."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def awkward(tmp_path: Path) -> Path:
    """A directory whose name every layer below has to quote."""
    return tmp_path / "a b" / "ünder=it"
