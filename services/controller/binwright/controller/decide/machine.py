"""The controller's state machine: `transition(state, event) -> (state, actions)`.

It is pure: the same records of partition 0 and the same measurements give the same commands.
`TRANSITIONS` lists all of it; the functions are in `transitions`, one module per state.
"""

from collections.abc import Callable, Mapping

from binwright.controller.decide.config import ControllerConfig
from binwright.controller.decide.events import (
    Event,
    Measured,
    Packed,
    ProcessEnded,
    Publish,
    RecordRead,
    Tick,
)
from binwright.controller.decide.group import Group
from binwright.controller.decide.states import (
    Manage,
    Reassign,
    Sentinel,
    State,
    Step,
    SteppedDown,
    Synchronize,
)
from binwright.controller.decide.transitions import manage, reassign, records, sentinel, synchronize
from binwright.controller.decide.transitions.common import ignore, on_measured, on_process_ended
from binwright.protocol.errors import IllegalTransition
from binwright.protocol.messages import Claim


def begin(config: ControllerConfig, controller: str, now: float) -> Step:
    """Begin a leadership: publish a claim, read partition 0 from its beginning, then act.

    Args:
        config: The group's settings.
        controller: The id of this controller's claims; unique for each leadership.
        now: Seconds, monotonic.
    """
    group = Group(config=config, controller=controller, ticked_at=now)
    return Synchronize(group, now), (Publish(Claim(controller=controller)),)


# (state, event) -> its function, and the other states that it may lead to. The diagram in
# docs/design/architecture.md is drawn from this table; a test compares the two.
TRANSITIONS: Mapping[tuple[type, type], tuple[Callable[..., Step], tuple[type, ...]]] = {
    (Synchronize, RecordRead): (synchronize.on_record, (Sentinel, SteppedDown)),
    (Synchronize, Measured): (on_measured, ()),
    (Synchronize, Packed): (ignore, ()),  # requested before the inconsistency
    (Synchronize, Tick): (synchronize.on_tick, ()),
    (Synchronize, ProcessEnded): (on_process_ended, ()),
    (Sentinel, RecordRead): (records.on_record, (Manage, Synchronize, SteppedDown)),
    (Sentinel, Measured): (on_measured, ()),
    (Sentinel, Packed): (ignore, ()),  # overdue
    (Sentinel, Tick): (sentinel.on_tick, (Reassign, Manage)),
    (Sentinel, ProcessEnded): (on_process_ended, ()),
    (Reassign, RecordRead): (records.on_record, (Manage, Synchronize, SteppedDown)),
    (Reassign, Measured): (on_measured, ()),
    (Reassign, Packed): (reassign.on_packed, (Sentinel, Manage)),
    (Reassign, Tick): (reassign.on_tick, (Sentinel,)),
    (Reassign, ProcessEnded): (on_process_ended, ()),
    (Manage, RecordRead): (records.on_record, (Sentinel, Synchronize, SteppedDown)),
    (Manage, Measured): (on_measured, ()),
    (Manage, Packed): (ignore, ()),  # overdue
    (Manage, Tick): (manage.on_tick, (Sentinel,)),
    (Manage, ProcessEnded): (on_process_ended, ()),
}


def transition(state: State, event: Event) -> Step:
    """Return the next state and what the shell must do; after `SteppedDown` that is nothing.

    Raises:
        IllegalTransition: A bug: a function led to a state that the table does not allow.
    """
    if isinstance(state, SteppedDown):
        return state, ()
    function, targets = TRANSITIONS[type(state), type(event)]
    after, actions = function(state, event)
    if type(after) not in {type(state), *targets}:
        raise IllegalTransition(f"{type(event).__name__}: {state} became {after}")
    return after, actions
