"""A line of the log shows what strangers sent, and does nothing to a terminal."""

import logging

import pytest
from structlog.testing import capture_logs

from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import configure_logging, log

EVENT = LogEvent.warning("message.malformed", "A record was skipped.")


@pytest.mark.parametrize(
    "event",
    [
        LogEvent.debug("file.written", "A file was written."),
        LogEvent.info("file.written", "A file was written."),
        LogEvent.warning("file.written", "A file was written."),
        LogEvent.error("file.written", "A file was written."),
    ],
    ids=lambda event: event.level,
)
def test_an_event_is_logged_by_its_name_at_its_own_level(event: LogEvent) -> None:
    with capture_logs() as logs:
        log(event, file="a")
    assert logs == [{"event": "file.written", "file": "a", "log_level": event.level}]


@pytest.mark.parametrize(
    "evil", ["a\x1b[2Jb", "a\x9b2Jb", "a\u202eb", "a\rb", "a\nb", "a\x1b[2J b"]
)
def test_control_characters_are_escaped_in_lines_for_people(
    evil: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("info", "console")
    log(EVENT, reason=evil, plain="käse")
    logging.getLogger("a library").warning("it said %s", evil)
    written = capsys.readouterr().err
    assert len(written.splitlines()) == 2
    assert evil not in written
    assert written.count(repr(evil)[1:-1]) == 2
    assert "plain=käse" in written


def fail(secret: str) -> None:
    raise ValueError(f"a\x1b[2Jb {len(secret)}")


def test_control_characters_of_an_error_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "console")
    try:
        fail("s3cret")
    except ValueError:
        log(EVENT, exc_info=True)
    written = capsys.readouterr().err
    assert "ValueError: a\\x1b[2Jb 6" in written
    assert written.count("s3cret") == 1, "in the source's line; values are not shown"


def test_lines_for_programs_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "json")
    log(EVENT, reason="a\x1b[2Jb")
    assert r'"reason": "a\u001b[2Jb"' in capsys.readouterr().err
