"""A table gets columns for new fields, whatever its consumers propose, and loses nothing by it."""

from collections import Counter

import orjson
import pyarrow as pa
import pytest

from binwright.consumer.decide.land.append import GROW_S
from binwright.consumer.decide.new_columns import ADDED, filled
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.new_fields import AddedFields
from binwright.consumer.stage.added_columns import LEARN_S, AddedColumns, publish_added
from binwright.protocol.model import TopicPartition
from binwright.tables.columns import REST, Column, Columns, columns_text, parse_row
from binwright.testing.lake import Failure

from .scene import COLUMNS, P, Q, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

FIXED = (*COLUMNS, REST)


class Consumer:
    """One that stages, and knows which columns the table got."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._added = scene, AddedColumns(scene.staging)

    async def added(self) -> Columns:
        return filled(await self._added.of("orders"), FIXED)

    async def stage(
        self, partition: TopicPartition, first: int, *documents: dict[str, object]
    ) -> None:
        """Stage records of these fields, from an offset on."""
        added = await self.added()
        decoder = JsonDecoder(COLUMNS, AddedFields(COLUMNS, added, Counter()), added=added)
        decoder.decode(pa.array([*map(orjson.dumps, documents)], pa.binary()))
        end = first + len(documents)
        if (missing := end - self._scene.topics.bounds(partition)[1]) > 0:
            self._scene.produce(partition, missing)
        await self._scene.stage({partition: (first, end)}, decoder=decoder)


async def growing_scene() -> Scene:
    scene = await Scene(columns=FIXED).prepare()
    scene.fixed = FIXED
    return scene


def there(scene: Scene) -> str:
    """Return the columns that the table got for new fields."""
    columns = scene.storage.table("orders").columns.values()
    return columns_text(tuple(column for column, comment in columns if comment == ADDED))


def alter(scene: Scene, column: str, comment: str = "") -> None:
    """Give the table a column, as a person does; in place of one of its name."""
    table, (new,) = scene.storage.table("orders"), parse_row(column)
    table.columns.pop(new.name, None)
    table.add_columns((new,), comment)


async def test_consumers_that_see_two_types_of_a_field_get_one_column() -> None:
    scene = await growing_scene()
    one, other = Consumer(scene), Consumer(scene)
    async with process(scene, "orders") as writer:
        await seconds(5)
        await one.stage(P, 0, {"id": 1, "x": 1})
        await other.stage(Q, 0, {"id": 1, "x": 1.5})
        await seconds(5)
        assert there(scene) == "x double"

        await seconds(LEARN_S)
        assert await one.added() == await other.added() == parse_row("x double")
        await one.stage(P, 1, {"x": "no number"})
        await other.stage(Q, 1, {"x": 2})
        await seconds(5)

        assert there(scene) == "x double"
        assert (scene.landed(P), scene.landed(Q)) == (once(2), once(2))
        assert not writer.gaps
        assert not scene.files()


async def test_a_writer_that_ends_before_it_publishes_leaves_that_to_the_next_one() -> None:
    scene = await growing_scene()
    async with process(scene, "orders"):
        await seconds(5)
    alter(scene, "x BIGINT", ADDED)
    async with process(scene, "orders", name="w2"):
        await seconds(5)
        assert await Consumer(scene).added() == ()
        await scene.land({P: (0, 1)})
        await seconds(5)
        assert await Consumer(scene).added() == parse_row("x bigint")


async def test_a_column_that_a_person_dropped_comes_again_for_rows_that_have_it() -> None:
    scene = await growing_scene()
    async with process(scene, "orders") as writer:
        await seconds(5)
        await publish_added(scene.staging, "orders", parse_row("x bigint"))
        await Consumer(scene).stage(P, 0, {"x": 1})
        await seconds(5)

        assert there(scene) == "x bigint"
        assert scene.landed(P) == once(1)
        assert not writer.gaps


async def test_a_column_that_a_person_gave_another_type_has_its_records_read_again() -> None:
    scene = await growing_scene()
    consumer = Consumer(scene)
    async with process(scene, "orders") as writer:
        await seconds(5)
        await consumer.stage(P, 0, {"x": 1})
        await seconds(LEARN_S)
        await consumer.stage(P, 1, {"x": 2})
        await seconds(5)
        assert scene.landed(P) == once(2)

        alter(scene, "x STRING")
        await consumer.stage(P, 2, {"x": 3})
        writer.lake.fail_next(Failure.REFUSED)  # as Delta refuses a number for text
        await seconds(30)
        (gap,) = writer.gaps
        assert gap == {P: 2}
        assert await consumer.added() == ()
        await consumer.stage(P, 2, {"x": 3})
        await seconds(5)

        assert scene.landed(P) == once(3)
        assert not writer.report().fault


async def test_a_table_gets_columns_once_they_can_be_published() -> None:
    scene = await growing_scene()
    async with process(scene, "orders"):
        await seconds(5)
        await Consumer(scene).stage(P, 0, {"x": 1})
        scene.staging.write_error = "injected failure"
        await seconds(5)
        assert there(scene) == "x bigint"
        scene.staging.write_error = ""
        await seconds(30)

        assert await Consumer(scene).added() == parse_row("x bigint")
        assert scene.landed(P) == once(1)


async def test_what_is_published_is_there_again_after_it_was_deleted() -> None:
    scene = await growing_scene()
    async with process(scene, "orders"):
        await seconds(5)
        await Consumer(scene).stage(P, 0, {"x": 1})
        await seconds(5)
        scene.staging.kept.clear()
        await Consumer(scene).stage(P, 1, {"x": 2})
        await seconds(GROW_S)
        await Consumer(scene).stage(P, 2, {"x": 3})
        await seconds(5)
        assert await Consumer(scene).added() == parse_row("x bigint")


async def test_files_of_consumers_of_other_versions_land_beside_each_other() -> None:
    """An older one proposes nothing; a newer one may have columns of types that none adds here."""
    scene = await growing_scene()
    newer = Column("t", parse_row("t timestamp")[0].type)
    async with process(scene, "orders") as writer:
        await seconds(5)
        scene.produce(P, 2)
        await scene.stage({P: (0, 1)}, decoder=JsonDecoder(COLUMNS))
        await scene.stage({P: (1, 2)}, decoder=JsonDecoder((*FIXED, newer)))
        await Consumer(scene).stage(Q, 0, {"x": 1})
        await seconds(5)

        assert there(scene) == "x bigint"
        assert (scene.landed(P), scene.landed(Q)) == (once(2), once(1))
        assert not writer.gaps


async def test_what_is_published_and_no_text_of_columns_adds_none() -> None:
    scene = await growing_scene()
    for content in (b"", b"\xff", b"x nothing", b"x bigint, x string"):
        await scene.staging.keep("orders", "~columns", content)
        assert await Consumer(scene).added() == ()
