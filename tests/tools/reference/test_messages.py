"""The page of messages leaves none out, and no field without its meaning."""

from dataclasses import dataclass
from typing import get_args

import pytest
from tools.reference.messages import TOPICS, _table

from binwright.balancer.decide.proposals import BrokerPlanRecord
from binwright.protocol.fields import Epoch, Number
from binwright.protocol.messages import Message
from binwright.protocol.stage_ranges import RangeMessage


def test_every_message_is_in_one_topic() -> None:
    listed = [kind for _, kinds in TOPICS.values() for kind in kinds]
    assert sorted(kind.__name__ for kind in listed) == sorted(
        kind.__name__
        for union in (Message, RangeMessage, BrokerPlanRecord)
        for kind in get_args(union)
    )


@dataclass
class Documented:
    rows: Number = 0  # landed: so many
    epoch: Epoch = 1


@dataclass
class Undocumented:
    count: Number


def test_a_field_s_meaning_is_its_comment_or_else_its_type_s() -> None:
    found = _table(Documented)
    assert "| `rows` | integer ≥ 0 | `0` | Landed: so many. |" in found
    assert "| `epoch` | integer | `1` | Which process of the slot:" in found


def test_a_field_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Undocumented\.count: no comment says what it is"):
        _table(Undocumented)
