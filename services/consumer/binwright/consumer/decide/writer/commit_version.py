"""The Delta app id and version of a writer's commits: Delta refuses no version above the last one.

A commit whose version is not above the table's last version of the same app id is skipped, so the
claim of a later epoch fences all commits of earlier ones (†).
"""

from binwright.protocol.model import Slot
from binwright.protocol.ports.lake import Table

COMMITS_PER_EPOCH = 1 << 24


def app_id(table: Table) -> str:
    """Return the Delta app id under which all writers of the table commit."""
    return f"binwright/{table.group}/{table.topic}"


def old_app_id(group: str, slot: Slot) -> str:
    """Return the app id under which a consumer of version 0.1 wrote."""
    return f"binwright/{group}/{slot}"


def txn_version(epoch: int, sequence: int = 0) -> int:
    """Return the app id's version of a writer's commit; 0 is its claim.

    Raises:
        ValueError: The epoch has no such number: claim a new epoch.
    """
    if not 0 <= sequence < COMMITS_PER_EPOCH:
        raise ValueError(f"an epoch has {COMMITS_PER_EPOCH} commits, this would be {sequence}")
    return epoch * COMMITS_PER_EPOCH + sequence
