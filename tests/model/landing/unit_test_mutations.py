"""Mutations that a unit test detects, because the explorer's worlds are too small for them."""

from collections.abc import Callable, Mapping

from tests.consumer.decide.writer import test_chain, test_topics

DETECTED_BY_TEST: Mapping[str, Callable[[], None]] = {
    "files are taken after a full batch": (
        test_chain.test_nothing_is_taken_after_a_file_that_does_not_fit
    ),
    "a busy neighbour hides a topic that is recreated": (
        test_topics.test_a_busy_neighbour_hides_no_topic_recreated
    ),
}
