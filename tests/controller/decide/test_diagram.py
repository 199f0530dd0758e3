"""docs/design/architecture.md shows the machine's transitions."""

from pathlib import Path

from binwright.controller.decide.diagram import diagram

PAGE = Path(__file__).parents[3] / "docs" / "design" / "architecture.md"


def test_the_documented_diagram_matches_the_transitions() -> None:
    assert f"```mermaid\n{diagram()}\n```" in PAGE.read_text()
