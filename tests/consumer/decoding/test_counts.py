"""What is decoded is counted by topic."""

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


async def test_time_and_bad_records_are_counted_by_topic_and_kind() -> None:
    async with Decoders(settings()) as decoders:
        assert decoders.totals() == DecodingTotals()
        assert await decoders.of("raw", {}) is None
        values = [b'{"id":1}', b'{"id":"x"}', b"{", b"}", None]
        for topic in ("orders", "orders", "lines"):
            decoder = await decoders.of(topic, {})
            assert decoder is not None
            _, bad = decoder.decode(pa.array(values if topic == "orders" else [b"7"], pa.binary()))
            assert len(bad) - bad.null_count == (3 if topic == "orders" else 0)
        found = decoders.totals()
    assert found.seconds.keys() == {"orders", "lines"}
    assert min(found.seconds.values()) > 0
    assert found.bad == {("orders", "incompatible"): 2, ("orders", "malformed"): 4}
    assert (found.versions, found.requests) == ({}, {})


async def test_a_decoder_has_the_columns_and_the_settings_of_its_topic() -> None:
    async with Decoders(settings()) as decoders:
        decoder = await decoders.of("lines", {})
    assert decoder is not None
    assert (str(decoder.columns[0].type), decoder.settings) == ("int", "csv ;: id int")
