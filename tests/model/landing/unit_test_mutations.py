"""Mutations that a unit test detects, because the explorer's worlds are too small for them."""

from collections.abc import Callable, Mapping

from tests.consumer.decide.land import test_append, test_backfills, test_chain, test_topics

DETECTED_BY_TEST: Mapping[str, Callable[[], None]] = {
    "files are taken after a full batch": (
        test_chain.test_nothing_is_taken_after_a_file_that_does_not_fit
    ),
    "a new claim knows the bad offsets of the one before": (
        test_append.test_a_new_claim_looks_for_bad_records_again
    ),
    "files that another writer deleted are read again": (
        test_append.test_files_that_another_writer_deleted_are_not_read_again
    ),
    "a log that is cut is back-filled": (
        test_backfills.test_a_log_that_is_cut_is_back_filled_no_further
    ),
    "a busy neighbour hides a topic that is recreated": (
        test_topics.test_a_busy_neighbour_hides_no_topic_recreated
    ),
}
