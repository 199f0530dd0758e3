"""Rules whose violation a unit test shows: the explorer's worlds are too small for these."""

from collections.abc import Callable, Mapping

from tests.core.writer import test_chain, test_resolve

BY_TEST: Mapping[str, Callable[[], None]] = {
    "goes on when a batch is full": (test_chain.test_nothing_is_taken_past_a_file_that_has_no_room),
    "fences no old consumer": (
        test_resolve.test_old_consumers_are_fenced_before_what_they_wrote_counts
    ),
}
