"""A table's writer lands nothing that was staged under another mask than its own."""

import pytest

from binwright.consumer.decide.land.append import REREAD_S

from .scene import COLUMNS, P, Scene, land_read_again, once, process, seconds

pytestmark = pytest.mark.looptime
MASK = "bad null; field mail sha256; key None"


async def test_a_table_waits_while_others_stage_without_its_mask() -> None:
    scene = await Scene(columns=COLUMNS).prepare()
    async with process(scene, "orders", masking=MASK) as writer:
        await seconds(5)
        await scene.land({P: (0, 3)})
        await land_read_again(scene, writer)
        assert scene.landed(P) == once(0)
        assert "under other settings of `mask`" in writer.report().fault
        await seconds(REREAD_S / 2)
        assert not writer.gaps  # they were read again once


async def test_a_table_without_a_mask_lands_what_was_masked() -> None:
    scene = await Scene(columns=COLUMNS).prepare()
    scene.masking = MASK
    async with process(scene, "orders"):
        await seconds(5)
        await scene.land({P: (0, 3)})
        await seconds(20)
        assert scene.landed(P) == once(3)
