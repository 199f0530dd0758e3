"""Rates of partitions whose sizes are sampled in turns, or never."""

from tests.monitor.decide.logs import Log, after, feed, sample_at, speed

from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol.metrics import PartitionRate


def turn(rates: TopicRates, now: float, log: Log, every: int) -> PartitionRate:
    log.size_known = now % every == 0
    return feed(rates, now, log)


def test_rates_are_exact_at_each_size() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(25):
        record_bytes = 100 if now < 13 else 1000
        measured = turn(rates, now, log.write(10, record_bytes), every=6)
    assert (speed(measured), measured.quality) == (10_000, "measured")
    assert measured.bytes_per_record == 1000


def test_between_two_sizes_records_are_estimated() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(17):
        measured = turn(rates, now, log.write(10), every=6)
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", 13_000)


def test_sizes_further_apart_than_the_window_still_give_bytes_per_record() -> None:
    rates, log = TopicRates(window_s=4), Log()
    for now in range(61):
        measured = turn(rates, now, log.write(10), every=20)
    assert (speed(measured), measured.window_s) == (1000, 4)


def test_retention_between_two_sizes_leaves_bytes_per_record() -> None:
    rates, log = TopicRates(), Log()
    for now in range(25):
        if now == 15:
            log.retain(30)
        measured = turn(rates, now, log.write(10), every=6)
    assert speed(measured) == 1000


def test_the_bytes_of_a_burst_are_distributed_by_its_records() -> None:
    rates, log = TopicRates(window_s=10), Log()
    for now in range(7):
        turn(rates, now, log.write(90 if now == 1 else 2), every=6)
    for now in range(7, 13):
        measured = turn(rates, now, log, every=6)
    assert speed(measured) == 4 * 200 / 10


def test_size_without_records_counts_once() -> None:
    """The end was sampled just before the size: bytes show first, their records a pass later."""
    rates, log = TopicRates(), Log()
    feed(rates, 0, log)
    log.size += 1000
    assert speed(feed(rates, 1, log)) == 1000


def test_partitions_without_sizes_lack_them_longest_due_first() -> None:
    rates = TopicRates(window_s=8)
    first, second, idle = Log(), Log(), Log()
    first.size_known = second.size_known = idle.size_known = False
    rates.feed(0, {0: idle.sample, 2: first.sample})
    rates.feed(1, {0: idle.sample, 2: first.write(5).sample, 1: second.sample})
    rates.feed(2, {0: idle.sample, 2: first.write(5).sample, 1: second.write(5).sample})
    assert rates.lacking_sizes() == (2, 1)


def test_batches_give_bytes_per_record_where_sizes_are_unknown() -> None:
    rates, log = TopicRates(window_s=8), Log()
    log.size_known = False
    for now in range(20):
        price = 100.0 if rates.lacking_sizes() else None
        measured = rates.feed(now, {0: sample_at(log.write(10), now, price)})[0]
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", None)
    assert measured.bytes_per_record == 100


def test_a_first_sample_may_have_a_batch() -> None:
    rates, log = TopicRates(), Log()
    log.size_known = False
    rates.feed(0, {0: sample_at(log.write(10), 0, 100.0)})
    assert speed(rates.feed(1, {0: sample_at(log.write(10), 1)})[0]) == 1000


def test_partitions_with_clean_sizes_lack_none() -> None:
    rates, log = TopicRates(window_s=8), Log()
    for now in range(20):
        feed(rates, now, log.write(10))
        assert now == 0 or not rates.lacking_sizes()


def test_with_retention_in_every_pass_sizes_are_lacking_after_a_while() -> None:
    """Without it a change of the records' size would stay undetected during retention."""
    rates, log = TopicRates(window_s=30), Log()
    after(10, rates, log)
    blind = []
    for now in range(11, 15):
        feed(rates, now, log.write(10).retain(20))
        blind.append(rates.lacking_sizes())
    assert blind == [(), (), (), (0,)]
