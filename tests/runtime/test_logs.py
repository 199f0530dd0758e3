"""A line of the log shows what strangers sent, and does nothing to a terminal."""

import logging

import pytest
import structlog

from binwright.runtime.logs import configure_logging


@pytest.mark.parametrize(
    "evil", ["a\x1b[2Jb", "a\x9b2Jb", "a\u202eb", "a\rb", "a\nb", "a\x1b[2J b"]
)
def test_control_characters_are_escaped_in_lines_for_people(
    evil: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("info", "console")
    structlog.get_logger().warning("message.malformed", reason=evil, plain="käse")
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
        structlog.get_logger().exception("service.failed")
    written = capsys.readouterr().err
    assert "ValueError: a\\x1b[2Jb 6" in written
    assert written.count("s3cret") == 1, "in the source's line; values are not shown"


def test_lines_for_programs_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "json")
    structlog.get_logger().warning("message.malformed", reason="a\x1b[2Jb")
    assert r'"reason": "a\u001b[2Jb"' in capsys.readouterr().err
