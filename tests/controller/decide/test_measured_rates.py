"""The last known rates, from measurement to measurement."""

from tests.builders import C, P, Q, topics

from binwright.controller.decide.measured_rates import MeasuredRates
from binwright.protocol.model import BytesPerSecond


def test_rates_are_a_mapping_of_what_was_measured() -> None:
    known = topics({P: 5.0, Q: 7.0, C: 9.0}, {})
    assert known == {P: 5.0, Q: 7.0, C: 9.0}
    assert len(known) == 3
    assert (known.get(P), known.get(P, 1.0)) == (5.0, 5.0)
    assert (MeasuredRates().get(P), MeasuredRates().get(P, 1.0)) == (None, 1.0)
    assert known.get(P._replace(partition=8), 1.0) == 1.0
    assert set(known.names) == {"orders", "clicks"}


def test_a_topic_that_was_not_measured_has_no_count() -> None:
    known = topics({}, {"orders": 2})
    assert (known.count("orders"), known.count("clicks")) == (2, None)


def test_a_measurement_keeps_the_rates_that_it_does_not_have() -> None:
    known = topics({P: 5.0, Q: 7.0, C: 9.0}, {}).with_topic("orders", 2, {0: BytesPerSecond(6.0)})
    assert known == {P: 6.0, Q: 7.0, C: 9.0}


def test_a_recreated_smaller_topic_loses_the_rates_of_missing_partitions() -> None:
    before = topics({P: 5.0, Q: 7.0}, {"orders": 2})
    assert before.with_topic("orders", 1, {}) == {P: 5.0}
    assert before == {P: 5.0, Q: 7.0}
