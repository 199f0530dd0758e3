"""What the page says of the machine is what the machine does."""

from pathlib import Path

from binwright.core.diagram import diagram

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_page_shows_the_states_as_they_are() -> None:
    assert f"```mermaid\n{diagram()}\n```" in PAGE.read_text()
