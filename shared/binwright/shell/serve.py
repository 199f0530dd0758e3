"""A service from its settings to its exit code."""

from collections.abc import Awaitable, Callable

from binwright.core.errors import UserError
from binwright.shell.logs import configure
from binwright.shell.run import complain, run
from binwright.shell.settings import Settings, load_settings


def serve(work: Callable[[Settings], Awaitable[None]]) -> int:
    """Run `work` with the settings of the file and the environment; return the exit code."""
    try:
        settings = load_settings()
    except UserError as exc:
        return complain(exc)
    configure(settings.log_level, settings.log_format)
    return run(lambda: work(settings))
