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
