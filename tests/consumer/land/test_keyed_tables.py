"""Changes of a table of keys are merged, each once, whatever the replies are."""

import pytest

from binwright.testing.lake import Failure

from .scene import COLUMNS, P, Scene, once, process, seconds

pytestmark = pytest.mark.looptime


async def keyed() -> Scene:
    scene = await Scene(columns=COLUMNS).prepare()
    scene.primary_key = ("id",)
    return scene


@pytest.mark.parametrize(
    "failure",
    [Failure.CONFLICT, Failure.UNCLEAR, Failure.UNCLEAR_LANDED, Failure.REFUSED],
)
async def test_changes_are_merged_once(failure: Failure) -> None:
    scene = await keyed()
    async with process(scene, "orders") as writer:
        await seconds(5)
        await scene.land({P: (0, 5)})
        await seconds(5)
        writer.lake.fail_next(failure)
        await scene.land({P: (5, 10)})
        await seconds(60)
        calls = {name for name, _ in writer.lake.calls}
        assert ("merge" in calls, calls & {"append", "add_files"}) == (True, set())
        assert writer.report().appended.startswith('mode = "upsert"')
    assert scene.landed(P) == once(10)


async def test_bad_records_that_decode_now_are_merged() -> None:
    scene = await keyed()
    scene.staging.is_bad = lambda _: True
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 6)})
        await seconds(10)
        scene.staging.is_bad = lambda _: False
        await scene.replay()
        await seconds(30)
        calls = [name for name, _ in writer.lake.calls]
        assert calls.count("note_deleted") == calls.count("merge") == 1
    assert (scene.bad(), scene.landed(P)) == ({}, once(6))
