"""docs/design/architecture.md shows the transitions of the controller's machine."""

from tests.docs.words import DOCS

from binwright.controller.decide.machine import TRANSITIONS


def diagram() -> str:
    """Return the states and the events that lead from one to another, as Mermaid text."""
    edges = sorted(
        f"    {old.__name__} --> {new.__name__}: {event.__name__}"
        for (old, event), (_, targets) in TRANSITIONS.items()
        for new in targets
    )
    ends = ["    [*] --> Synchronize", "    SteppedDown --> [*]"]
    return "\n".join(["stateDiagram-v2", ends[0], *edges, ends[1]])


def test_the_documented_diagram_matches_the_transitions() -> None:
    page = (DOCS / "design" / "architecture.md").read_text()
    assert f"```mermaid\n{diagram()}\n```" in page
