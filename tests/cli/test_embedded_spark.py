"""A command that reads tables uses the Spark server that is named, else an embedded one."""

import sys
from pathlib import Path

import pytest

from binwright.cli import embedded_spark
from binwright.cli.embedded_spark import spark_connect
from binwright.protocol.errors import SettingsError


async def test_a_named_server_is_used_as_it_is(tmp_path: Path) -> None:
    async with spark_connect(tmp_path, print, "sc://spark:15002") as url:
        assert url == "sc://spark:15002"


async def test_without_the_embedded_servers_a_name_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, embedded_spark.EMBEDDED, None)
    with pytest.raises(SettingsError, match=r"--spark .*binwright\[embedded\]"):
        async with spark_connect(tmp_path, print, None):
            pass
