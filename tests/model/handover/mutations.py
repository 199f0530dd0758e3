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
from binwright.group.fold import Folded
from binwright.group.group import Group

_from_consumer = fold._from_consumer


def _any_epoch(group: Group, message: Any, event: Any) -> Folded:
    epoch = group.member(message.slot).epoch
    if epoch is not None:
        message = replace(message, epoch=epoch)
    return _from_consumer(group, message, event)


def _sends_no_leave(group: Group, message: Any, event: Any) -> Folded:
    if message.epoch != group.member(message.slot).epoch:
        return group, ()
    return _from_consumer(group, message, event)


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
