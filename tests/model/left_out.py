"""Rules of the protocol, each left out by changing one function: what the explorer must find."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.core import process as little
from tests.core.process import Process

from binwright.core import handover, hearing, machine, messages, moving, synchronize

from . import consumers, controllers, universe
from .process import Consumer

Patch = tuple[object, str, Any]
"""Where, what, and what instead."""


@contextmanager
def left_out(patches: tuple[Patch, ...]) -> Iterator[None]:
    """Run without a rule; everything is as it was afterwards."""
    before = [(where, name, getattr(where, name)) for where, name, _ in patches]
    for where, name, instead in patches:
        setattr(where, name, instead)
    try:
        yield
    finally:
        for where, name, what in before:
            setattr(where, name, what)


LEFT_OUT: Mapping[str, tuple[Patch, ...]] = {
    # the consumer
    "no_term_check": ((handover, "obey", consumers.obeys_any_term),),
    "start_resets": ((handover, "_start", consumers.start_resets),),
    "fences_of_an_earlier_start": ((handover, "_start", consumers.forgets_fences),),
    "report_overtakes": ((Process, "_do", consumers.reports_before_it_answers),),
    "bye_in_flight": ((handover, "drain", consumers.leaves_with_a_write_in_flight),),
    "bye_before_ready": (
        (handover, "drain", consumers.leaves_before_it_is_ready),
        (hearing, "_word", controllers.believes_any_goodbye),
    ),
    "report_hides_unsettled": ((handover.Consumer, "among", consumers.hides_what_closes),),
    "stopped_hides_unsettled": ((handover, "_stop", consumers.stopped_is_always_settled),),
    "lands_what_is_read_ahead": ((handover.Consumer, "landed", consumers.lands_ahead),),
    # the session
    "read_then_fence": (
        (Process, "_open", consumers.reads_before_it_fences),
        (Process, "_resolve", consumers.what_was_read_before),
    ),
    "lost_fence_is_fine": ((Process, "take_verdict", consumers.believes_conflicts("fence")),),
    "lost_claim_is_fine": ((Process, "take_verdict", consumers.believes_conflicts("claim")),),
    "conflict_is_landed": ((Process, "take_verdict", consumers.believes_conflicts("write")),),
    "skip_is_landed": ((Process, "take_verdict", consumers.takes_skipped_for_landed),),
    "retry_new_version": ((Process, "take_verdict", consumers.writes_again_under_a_new_number),),
    "stamp_names_read_ahead": ((Process, "_stamped", consumers.stamps_what_is_read_ahead),),
    "hint_names_read_ahead": ((Consumer, "hints", consumers.hints_what_is_ahead),),
    "hint_truth": ((little, "resolve", consumers.resolve_by_hint),),
    "stamp_over_hint": ((little, "resolve", consumers.resolve_by_last_stamp),),
    # the controller
    "old_epoch_reports": (
        (hearing, "_word", controllers.hears_any_epoch),
        (machine, "collect", controllers.collects_any_epoch),
    ),
    "old_answers": (
        (machine, "take_answer", controllers.takes_answers_of_any_epoch),
        (hearing, "stopped", controllers.any_stopped_will_do),
    ),
    "old_epoch_answers": ((machine, "take_answer", controllers.takes_answers_of_any_epoch),),
    "old_revision_stopped": ((hearing, "stopped", controllers.any_stopped_will_do),),
    "old_revision_started": ((hearing, "started", controllers.any_started_will_do),),
    "old_revision_landed": ((hearing, "landed", controllers.any_landed_will_do),),
    "ignores_deposed_dead": ((hearing, "_dead", controllers.ignores_the_deposed),),
    "voided_not_told": ((hearing, "_word", controllers.tells_nobody_to_leave),),
    "goodbye_said_again": ((hearing, "_just_left", controllers.any_last_word),),
    "unready_pays": (
        (hearing, "_report", controllers.ready_by_any_report),
        (synchronize, "_doubted", controllers.doubts_only_the_dead),
    ),
    "fence_above_all": ((moving, "fences", controllers.fences_above_all),),
    "fences_only_the_dead": ((moving, "fences", controllers.fences_only_the_dead),),
    "owes_only_the_last": ((hearing, "lose", controllers.owes_only_the_last),),
    "owes_nothing": ((hearing, "lose", controllers.owes_nothing),),
    "fences_with_offset": (
        (moving, "_start", controllers.goes_on_where_the_dead_began),
        (messages.StartConsuming, "__post_init__", lambda _: None),
    ),
    "pays_every_death": ((hearing, "_started", controllers.pays_every_death),),
    "never_ahead": ((moving, "_start", controllers.never_ahead),),
    "resolves_with_a_tail": ((moving, "_wanted", controllers.resolves_while_tails_are_out),),
    "back_to_its_writer": ((moving, "_may_start", controllers.gives_it_back_to_its_writer),),
    "moves_on_with_a_tail": ((moving, "_wanted", controllers.moves_on_while_tails_are_out),),
    "dead_writer_heir_lands": ((hearing, "_lost", controllers.lets_the_heir_land),),
    "repeats_it_all": ((machine, "repeat", controllers.repeats_it_all),),
    # Synchronize
    "lost_landed_not_missed": ((hearing, "_unheard", controllers.misses_no_landed),),
    "asks_only_the_fleet": ((universe.Universe, "history", controllers.knows_only_the_fleet),),
    "reads_from_claim": ((universe.Universe, "history", controllers.blank_history),),
    "awaits_lost_landed": ((machine, "concluded", controllers.lets_readers_ahead_land),),
    "held_twice_believed": ((machine, "concluded", controllers.believes_both),),
}
