"""What is decoded is counted by table."""

import pyarrow as pa

from binwright.consumer.decoding.decoders import Decoders, DecodingTotals
from binwright.runtime.settings import Settings, load_settings


def settings() -> Settings:
    return load_settings(
        topics=["orders", "lines", "raw"],
        kafka={"bootstrap_servers": "localhost:1"},
        tables=[
            {"topics": ["orders"], "format": "json", "columns": "id INT"},
            {"topics": ["lines"], "format": "csv", "columns": "id INT", "delimiter": ";"},
        ],
    )


async def test_time_and_bad_records_are_counted_by_table_and_kind() -> None:
    (raw,), (orders,), (lines,) = (settings().targets(t) for t in ("raw", "orders", "lines"))
    async with Decoders(settings()) as decoders:
        assert decoders.totals() == DecodingTotals()
        assert await decoders.of(raw, {}) is None
        values = [b'{"id":1}', b'{"id":"x"}', b"{", b"}", None]
        for target in (orders, orders, lines):
            decoder = await decoders.of(target, {})
            assert decoder is not None
            _, bad = decoder.decode(pa.array(values if target == orders else [b"7"], pa.binary()))
            assert len(bad) - bad.null_count == (3 if target == orders else 0)
        found = decoders.totals()
    assert found.seconds.keys() == {orders, lines}
    assert min(found.seconds.values()) > 0
    assert found.bad == {(orders, "incompatible"): 2, (orders, "malformed"): 4}
    assert (found.versions, found.requests) == ({}, {})


async def test_a_decoder_has_the_columns_and_the_settings_of_its_table() -> None:
    async with Decoders(settings()) as decoders:
        decoder = await decoders.of(settings().targets("lines")[0], {})
    assert decoder is not None
    assert (str(decoder.columns[0].type), decoder.settings) == ("int", "csv ;: id int")
