"""Rates where sizes are told in turns, or never."""

from binwright.core.messages import PartitionRate
from binwright.core.rate import TopicRates

from .logs import Log, after, feed, speed, taken


def turn(rates: TopicRates, now: float, log: Log, every: int) -> PartitionRate:
    log.told = now % every == 0
    return feed(rates, now, log)


def test_sizes_in_turns_are_exact_when_the_turn_comes() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(25):
        record_bytes = 100 if now < 13 else 1000
        measured = turn(rates, now, log.write(10, record_bytes), every=6)
    assert (speed(measured), measured.quality) == (10_000, "measured")
    assert measured.bytes_per_record == 1000


def test_between_two_turns_records_are_priced() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(17):
        measured = turn(rates, now, log.write(10), every=6)
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", 13_000)


def test_a_turn_longer_than_the_window_still_tells_the_price() -> None:
    rates, log = TopicRates(window_s=4), Log()
    for now in range(61):
        measured = turn(rates, now, log.write(10), every=20)
    assert (speed(measured), measured.window_s) == (1000, 4)


def test_between_two_turns_retention_leaves_the_price() -> None:
    rates, log = TopicRates(), Log()
    for now in range(25):
        if now == 15:
            log.retain(30)
        measured = turn(rates, now, log.write(10), every=6)
    assert speed(measured) == 1000


def test_the_bytes_of_a_burst_go_where_its_records_went() -> None:
    rates, log = TopicRates(window_s=10), Log()
    for now in range(7):
        turn(rates, now, log.write(90 if now == 1 else 2), every=6)
    for now in range(7, 13):
        measured = turn(rates, now, log, every=6)
    assert speed(measured) == 4 * 200 / 10


def test_size_without_records_counts_once() -> None:
    """The end was asked just before the size: bytes come first, their records a pass later."""
    rates, log = TopicRates(), Log()
    feed(rates, 0, log)
    log.size += 1000
    assert speed(feed(rates, 1, log)) == 1000


def test_what_is_never_weighed_is_blind_and_longest_due_first() -> None:
    rates = TopicRates(window_s=8)
    first, second, idle = Log(), Log(), Log()
    first.told = second.told = idle.told = False
    rates.feed(0, {0: idle.sample, 2: first.sample})
    rates.feed(1, {0: idle.sample, 2: first.write(5).sample, 1: second.sample})
    rates.feed(2, {0: idle.sample, 2: first.write(5).sample, 1: second.write(5).sample})
    assert rates.blind() == (2, 1)


def test_batches_give_a_price_where_sizes_are_kept_secret() -> None:
    rates, log = TopicRates(window_s=8), Log()
    log.told = False
    for now in range(20):
        price = 100.0 if rates.blind() else None
        measured = rates.feed(now, {0: taken(log.write(10), now, price)})[0]
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", None)
    assert measured.bytes_per_record == 100


def test_a_first_sample_may_bring_its_price() -> None:
    rates, log = TopicRates(), Log()
    log.told = False
    rates.feed(0, {0: taken(log.write(10), 0, 100.0)})
    assert speed(rates.feed(1, {0: taken(log.write(10), 1)})[0]) == 1000


def test_clean_sizes_leave_nothing_blind() -> None:
    rates, log = TopicRates(window_s=8), Log()
    for now in range(20):
        feed(rates, now, log.write(10))
        assert now == 0 or not rates.blind()


def test_retention_in_every_pass_is_blind_after_a_while() -> None:
    """Or a change of the records' size would not be noticed as long as it lasts."""
    rates, log = TopicRates(window_s=30), Log()
    after(10, rates, log)
    blind = []
    for now in range(11, 15):
        feed(rates, now, log.write(10).retain(20))
        blind.append(rates.blind())
    assert blind == [(), (), (), (0,)]
