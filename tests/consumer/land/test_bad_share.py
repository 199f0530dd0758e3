"""A table stops where too many records cannot be decoded, and loses none of them."""

import pytest

from binwright.consumer.decide.land.append import REREAD_S

from .scene import COLUMNS, P, Q, Scene, land_read_again, once, process, seconds

pytestmark = pytest.mark.looptime

FIRST_BAD = 3  # offset


async def stopped_scene() -> Scene:
    """Stage, of one partition, rows and behind them bad records."""
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.is_bad = lambda record: record.offset >= FIRST_BAD
    await scene.land({P: (0, FIRST_BAD)})
    return scene


async def test_a_table_stops_at_its_first_bad_record_and_names_it() -> None:
    scene = await stopped_scene()
    async with process(scene, "orders", bad_share=0.0) as writer:
        await seconds(5)
        await scene.land({P: (FIRST_BAD, 6), Q: (0, 2)})
        await land_read_again(scene, writer)
        fault = writer.report().fault

        assert scene.landed(P) == once(FIRST_BAD)
        assert scene.bad() == {}
        assert fault == (
            "3 of the newest 1000 records are bad, and bad_share allows 0 of them, as "
            f"{P} at offset {FIRST_BAD}: injected"
        )
        await seconds(REREAD_S / 2)
        assert not writer.gaps  # they were read again once
    async with process(scene, "orders", name="w2") as writer:
        await land_read_again(scene, writer)

        assert scene.landed(P) == once(6)
        assert scene.landed(Q) == once(2)
        assert scene.bad() == {P: [3, 4, 5]}
        assert not writer.report().fault


async def test_records_are_decoded_again_once_the_settings_are_mended() -> None:
    """What was staged by the earlier ones, and more than once, is not what the table waits for."""
    scene = await stopped_scene()
    async with process(scene, "orders", bad_share=0.0) as writer:
        await scene.land({P: (FIRST_BAD, 6)})
        await land_read_again(scene, writer)
        await scene.stage({P: (FIRST_BAD, 6)})
        assert len(scene.files()) == 3
        assert writer.report().fault
    scene.staging.is_bad, scene.decoding = lambda _: False, "json: others"
    async with process(scene, "orders", name="w2", bad_share=0.0) as writer:
        await land_read_again(scene, writer)

        assert scene.landed(P) == once(6)
        assert scene.bad() == {}


async def test_staged_records_that_kafka_has_no_more_are_kept_until_they_may_land() -> None:
    scene = await stopped_scene()
    async with process(scene, "orders", bad_share=0.0) as writer:
        await seconds(5)
        await scene.land({P: (FIRST_BAD, 6)})
        scene.topics.delete_records(P, 6)
        await seconds(REREAD_S)

        assert not writer.gaps
        assert "Kafka no longer has all of these records" in writer.report().fault
    async with process(scene, "orders", name="w2", bad_share=0.5):
        await seconds(20)

        assert scene.landed(P) == once(6)


async def test_while_kafka_is_away_nothing_is_given_up() -> None:
    scene = await stopped_scene()
    async with process(scene, "orders", bad_share=0.0) as writer:
        await seconds(5)
        writer.reader.fail_next(calls=20)
        await scene.land({P: (FIRST_BAD, 6)})
        await seconds(30)
        assert not writer.gaps
        assert "whether Kafka still has them is not known" in writer.report().fault

        await seconds(240)
        assert writer.gaps[0] == {P: FIRST_BAD}
