"""Structured logs: events with fields on standard error, as console lines or JSON."""

import logging
import sys

import structlog


def configure_logging(level: str, fmt: str) -> None:
    """Write our events and libraries' warnings to standard error as `console` lines or `json`."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    errors = [structlog.processors.format_exc_info] if fmt == "json" else []
    structlog.configure(
        processors=[*shared, *errors, last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *errors, last],
            foreign_pre_chain=shared,
        )
    )
    # Of libraries, only warnings and errors are logged.
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)
    # aiokafka logs an outage tens of times a second; our own errors carry the reason once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
