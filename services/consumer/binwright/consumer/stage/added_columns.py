"""The columns that tables got for new fields of JSON: writers publish them, consumers read them."""

from math import inf

from binwright.protocol.names import ADDED_COLUMNS
from binwright.runtime.clock import loop_s
from binwright.tables.columns import Columns, columns_text, known_columns
from binwright.tables.ports import Staging

LEARN_S = 10.0
"""After which they are read again."""


async def publish_added(staging: Staging, table: str, columns: Columns) -> None:
    """Publish which columns the table got; raise `StagingUnavailable`."""
    await staging.keep(table, ADDED_COLUMNS, columns_text(columns).encode())


class AddedColumns:
    """What is published, at most `LEARN_S` old."""

    def __init__(self, staging: Staging) -> None:
        """Read it there."""
        self._staging = staging
        self._known: dict[str, tuple[Columns, float]] = {}

    async def of(self, table: str) -> Columns:
        """Return the columns that a table got.

        Raises:
            StagingUnavailable: They cannot be read now: what is staged by old ones may not land.
        """
        now = loop_s()
        columns, read_at = self._known.get(table, ((), -inf))
        if now >= read_at + LEARN_S:
            # Of what is no text of columns none are known: then all new fields are kept.
            columns = known_columns(await self._staging.content(table, ADDED_COLUMNS))
            self._known[table] = columns, now
        return columns
