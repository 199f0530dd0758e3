"""Rules of the hand-over, each left out by changing one function of the product's.

Few of them break anything in small groups: no row depends on the hand-over, and whatever two sides
believe is corrected by the next report. The others have unit tests (tests/core).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.model.landing.mutations import Patch

from binwright.core import hearing, machine
from binwright.core.group import Group

_from_consumer = hearing._from_consumer


def _any_epoch(group: Group, message: Any, event: Any) -> hearing.Applied:
    epoch = group.member(message.slot).epoch
    if epoch is not None:
        message = replace(message, epoch=epoch)
    return _from_consumer(group, message, event)


def _tells_nobody_to_leave(group: Group, message: Any, event: Any) -> hearing.Applied:
    if message.epoch != group.member(message.slot).epoch:
        return group, ()
    return _from_consumer(group, message, event)


def _stays(_group: Group, _event: Any) -> None:
    return None


MUTATIONS: Mapping[str, tuple[Patch, ...]] = {
    "hears any epoch": ((hearing, "_from_consumer", _any_epoch),),
    "tells nobody to leave": ((hearing, "_from_consumer", _tells_nobody_to_leave),),
    "does not step down": ((machine, "overtaken", _stays),),
}
