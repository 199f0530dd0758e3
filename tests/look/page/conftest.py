"""One browser for all tests of the page."""

from collections.abc import Iterator

import pytest
from tests.chromium import chromium
from tests.programs import ProgramMissing


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a Chromium is driven that has nothing but this machine."""
    try:
        with chromium(tmp_path_factory.mktemp("chromium")) as address:
            yield address
    except ProgramMissing as exc:
        pytest.skip(str(exc))
