"""The directory of one system on this machine."""

from pathlib import Path

import pytest

from binwright.local.home import alone_in
from binwright.protocol.errors import SettingsError


async def test_a_directory_that_cannot_be_made_is_refused_with_what_to_name(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(SettingsError, match=r"lake/_up cannot be written: .*--lake or --directory"):
        async with alone_in(tmp_path / "lake" / "_up"):
            pass
