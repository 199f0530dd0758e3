"""Structured logs: events with fields on standard error, as console lines or JSON."""

import logging
import sys
from io import StringIO
from typing import TextIO

import structlog

from binwright.protocol.log_events import LogEvent
from binwright.runtime.control_characters import visible


def log(event: LogEvent, /, **fields: object) -> None:
    """Log an event; with `exc_info=True`, also the traceback of the error that is handled."""
    getattr(structlog.get_logger(), event.level)(event, **fields)  # noqa: TID251 - the one place


class _Quoted:
    """A text that is shown as Python's literal."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return repr(self._text)


def _quote_control_characters(
    _: object, __: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Show them as escapes: fields may have texts of strangers, such as a message's.

    The renderer quotes only texts with spaces and the like.
    """
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = repr(value)[1:-1] if name == "event" else _Quoted(value)
    return event


def _write_traceback(stream: TextIO, exc_info: structlog.typing.ExcInfo) -> None:
    """Write a traceback without values of variables, which may be secret."""
    text = StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    stream.write(visible(text.getvalue()))


def configure_logging(level: str, fmt: str) -> None:
    """Write our events and libraries' warnings to standard error as `console` lines or `json`."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if fmt == "json"
        else [
            _quote_control_characters,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=_write_traceback
            ),
        ]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
            foreign_pre_chain=shared,
        )
    )
    # Of libraries, only warnings and errors are logged.
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)
    # aiokafka logs an outage tens of times a second; our own errors carry the reason once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
