"""The labels by which fleets find what they run: the same on containers, Deployments and pods."""

from collections.abc import Mapping

from binwright.protocol.model import Slot

DOMAIN = "binwright.dev"
GROUP_LABEL, SLOT_LABEL = f"{DOMAIN}/group", f"{DOMAIN}/slot"


def labelled_slot(labels: Mapping[str, str]) -> Slot | None:
    """Return the slot by its label; None if there is none, or it is not a number."""
    text = labels.get(SLOT_LABEL, "")
    return Slot(int(text)) if text.isascii() and text.isdigit() else None
