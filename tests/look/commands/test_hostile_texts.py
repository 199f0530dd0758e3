"""What strangers wrote is text in a terminal: it moves no cursor, hides nothing, sets no title.

Messages, registries and records have texts of whoever may write them.
"""

import io
from collections.abc import Iterator

import pytest

from binwright.cli.runner import ProgressConsole
from binwright.cli.terminal import Console, print_page
from binwright.look.commands import live_page, status_page
from binwright.look.explain.answers import GroupFacts as SeenGroup
from binwright.look.explain.questions import answer
from binwright.look.group_view import GroupView
from binwright.look.order_text import order_text
from binwright.look.status import Status, status
from binwright.protocol import wire
from binwright.protocol.errors import ExternalError, SettingsError
from binwright.protocol.metadata import (
    Claim,
    Held,
    Hello,
    Inbound,
    Planned,
    Report,
    TableReport,
    decode_inbound,
)
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import FreezeOrder, decode_order
from binwright.runtime.run import print_error, print_usage_error

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[1;1Hall is well\x1b[8m\x9b2J\u202e\r\x08\x00"
PARTITION = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000


@pytest.fixture
def seen() -> SeenGroup:
    """A group of which each text that a writer of its topics chooses is hostile."""
    view = GroupView()
    report = Report(
        slot=Slot(0),
        epoch=2,
        term=1,
        ready=True,
        reading={PARTITION: 1},
        writing={"orders": TableReport(state="refused", committed={PARTITION: 1}, fault=HOSTILE)},
        faults={"orders": HOSTILE},
    )
    messages: list[Inbound] = [
        Claim(controller=HOSTILE, limit=BytesPerSecond(1.0)),
        Hello(slot=Slot(0), process="h/1/x", version=HOSTILE),
        report,
        Planned(
            term=1,
            reasons=(HOSTILE,),
            consumers=1,
            moves={},
            rscore=0.0,
            rates={},
            targets={PARTITION: Slot(0)},
        ),
        Held(term=1, reasons=(HOSTILE,)),
    ]
    for offset, message in enumerate(messages, 1):
        view.apply(offset, NOW_MS, decode_inbound(wire.encode(message)))
    order = FreezeOrder(frozen=True, by=HOSTILE, reason=HOSTILE, at_ms=NOW_MS)
    view.apply(6, NOW_MS, decode_order(wire.encode(order)))
    return SeenGroup(view, status(HOSTILE, view, NOW_MS, None), NOW_MS)


def pages(seen: SeenGroup) -> Iterator[str]:
    shown: Status = seen.status
    for draw in (
        lambda console: print_page(console, status_page.draw([shown], 200)),
        lambda console: console.print(live_page.draw(console, shown, seen.view, HOSTILE, HOSTILE)),
        lambda console: console.print(live_page.line(shown)),
        lambda console: [console.print(line.text) for line in answer(seen, "").lines],
        lambda console: [console.print(order_text(each)) for each in shown.orders],
    ):
        output = io.StringIO()
        draw(Console(file=output, force_terminal=True, width=200, height=60, color_system=None))
        yield output.getvalue()
    output = io.StringIO()
    progress = ProgressConsole(file=output, force_terminal=True, width=200, color_system=None)
    progress.log(HOSTILE)
    progress.copyable(HOSTILE)
    yield output.getvalue()


def assert_harmless(text: str) -> None:
    assert "owned" in text
    assert not [c for c in text if not c.isprintable() and c != "\n"]


def test_no_page_writes_a_control_character_of_a_message(seen: SeenGroup) -> None:
    for page in pages(seen):
        assert_harmless(page)


def test_no_error_does_either(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(ExternalError(f"schema {HOSTILE}"))
    print_usage_error(SettingsError(HOSTILE))
    assert_harmless(capsys.readouterr().err)
