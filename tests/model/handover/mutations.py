"""Mutations of the hand-over: each disables one rule by replacing a function of the product.

Few rules matter in small groups: no row depends on the hand-over, and the next report corrects what
a controller assumes. The other rules have unit tests (`tests/controller/decide`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.model.landing.mutations import Patch

from binwright.controller.decide import machine, synchronize
from binwright.group import fold
from binwright.group.fold import MembersFolded
from binwright.group.group import Group
from binwright.group.members import Members

_from_consumer = fold._from_consumer


def _any_epoch(members: Members, message: Any, event: Any, *, leads: bool) -> MembersFolded:
    epoch = members.get(message.slot).epoch
    if epoch is not None:
        message = replace(message, epoch=epoch)
    return _from_consumer(members, message, event, leads=leads)


def _sends_no_leave(members: Members, message: Any, event: Any, *, leads: bool) -> MembersFolded:
    if message.epoch != members.get(message.slot).epoch:
        return members, ()
    return _from_consumer(members, message, event, leads=leads)


def _ignores_later_claims(_group: Group, _event: Any) -> None:
    return None


MUTATIONS: Mapping[str, tuple[Patch, ...]] = {
    "any epoch is applied": ((fold, "_from_consumer", _any_epoch),),
    "no leave command is sent": ((fold, "_from_consumer", _sends_no_leave),),
    "does not step down": (
        (machine, "later_claim", _ignores_later_claims),
        (synchronize, "later_claim", _ignores_later_claims),
    ),
}
