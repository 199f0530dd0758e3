"""What the glossary names is in the code."""

from tests.docs.words import DOCS, unknown


def test_every_setting_and_log_event_on_the_page_exists() -> None:
    assert unknown(DOCS / "glossary.md") == set()
