"""The monitor as a process: `python -m binwright.monitor`."""

import re
import sys
from collections.abc import Sequence

from binwright.core.errors import SettingsError
from binwright.core.ports import Selection
from binwright.monitor.sizes import KafkaLogs
from binwright.monitor.watch import Watch
from binwright.shell.bus import KafkaBus
from binwright.shell.health import served
from binwright.shell.serve import parse, serve
from binwright.shell.settings import Settings

NO_TOPICS = """\
no topics to measure. Name them in the settings file (the one that BINWRIGHT_SETTINGS names):
  topics = ["orders", "clicks"]
or in the environment:
  BINWRIGHT_TOPICS='["orders", "clicks"]'
or give a regular expression for whole names: monitor.pattern (BINWRIGHT_MONITOR__PATTERN)"""


async def run(settings: Settings) -> None:
    """Measure the topics that the settings select until cancelled.

    Raises:
        SettingsError: No topic is named, and no pattern given.
        BrokerUnavailable: Kafka cannot be reached at the start; says what to check.
    """
    how = settings.monitor
    if not settings.topics and how.pattern is None:
        raise SettingsError(NO_TOPICS)
    logs = KafkaLogs(settings.kafka, answer_s=how.answer_s, sizes_per_pass=how.sizes_per_pass)
    async with served(settings.health) as health, KafkaBus(settings.kafka) as bus, logs:
        watch = Watch(logs, bus, selected(settings), how, health.beat)
        health.ready = lambda: watch.trouble
        await watch.run()


def selected(settings: Settings) -> Selection:
    """Return the topics that are named, and the pattern of those that are not."""
    pattern = settings.monitor.pattern
    return Selection(
        topics=frozenset(settings.topics),
        pattern=None if pattern is None else re.compile(pattern),
        never=frozenset({settings.monitor.topic, settings.metadata_topic}),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the monitor with the settings of the file and the environment."""
    parse("monitor", __doc__, arguments)
    return serve(run)


if __name__ == "__main__":
    sys.exit(main())
