"""A record of partition 0, in every state in which this controller leads."""

from dataclasses import replace

from binwright.controller.decide.applying import apply_record, later_claim
from binwright.controller.decide.events import Log, Publish, RecordRead, StepDown
from binwright.controller.decide.inconsistencies import correct, inconsistency
from binwright.controller.decide.moves.advance import add_misplaced
from binwright.controller.decide.states import Leading, Manage, Step, SteppedDown, Synchronize
from binwright.controller.decide.transitions.manage import proceed
from binwright.protocol.messages import Claim, Report, Started


def on_record(state: Leading, event: RecordRead) -> Step:
    """Apply the record and send what it makes possible; a contradiction leads to Synchronize."""
    if (other := later_claim(state.group, event)) is not None:
        return SteppedDown(state.group, event.now), (StepDown(other),)
    group, actions = apply_record(state.group, event)
    if reason := inconsistency(group, event.message):
        claim = Publish(Claim(controller=group.controller))
        log = Log("assignment.inconsistent", {"reason": reason})
        return Synchronize(replace(group, term=None), event.now), (*actions, log, claim)
    group, more = correct(group, event.message, event.now)
    actions, state = (*actions, *more), replace(state, group=group)
    if isinstance(event.message, Started) and isinstance(state, Manage):
        state = replace(state, goal=add_misplaced(group, state.goal, event.message.offsets))
    if isinstance(event.message, Report) and not actions:
        return state, ()  # most reports hold nothing new
    return proceed(state, event.now, actions)
