"""A claim commits to the table of bad records first, then to the table (design/protocol.md)."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.runtime.settings.consumer import LakeSettings
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Table


class FakeSession:
    """Runs what it is given, and keeps the statements."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        conf = SimpleNamespace(set=lambda *_: None, unset=lambda _: None)
        self.spark = SimpleNamespace(conf=conf, sql=self._sql)

    def _sql(self, statement: str) -> Any:
        self.statements.append(statement)
        return SimpleNamespace(collect=list)

    async def run(self, work: Callable[[Any], Any], _limit_s: float) -> Any:
        return work(self.spark)

    async def close(self) -> None:
        pass


async def test_the_table_of_bad_records_is_claimed_before_the_table() -> None:
    """Once the claim's stamp is in the table, no append of an earlier writer ends in either."""
    lake, session = SparkLake(LakeSettings(path="/lake"), "/staging", 60.0), FakeSession()
    lake._sessions["orders"] = session  # type: ignore[assignment]
    lake._of_columns["orders"] = Table("orders", "g", "c", parse_columns("id BIGINT"))
    await lake.claim("orders", "writer", "{}")
    tables = [s.split("SET")[0].rpartition("/")[2].strip(" `") for s in session.statements]
    assert tables == ["orders__bad", "orders"]
