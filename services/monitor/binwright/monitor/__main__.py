"""The monitor as a process: `python -m binwright.monitor`."""

import re
import sys
from collections.abc import Sequence

from binwright.core.errors import SettingsError
from binwright.core.selection import Selection
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
or give regular expressions for whole names: topic_patterns (BINWRIGHT_TOPIC_PATTERNS)"""


async def run(settings: Settings) -> None:
    """Measure the topics that the settings select until cancelled.

    Raises:
        SettingsError: No topic is named, and no pattern given.
        BrokerUnavailable: Kafka cannot be reached at the start; says what to check.
    """
    how, own = settings.monitor, selected(settings)
    if not (own.topics or own.patterns):
        raise SettingsError(NO_TOPICS)
    logs = KafkaLogs(settings.kafka, answer_s=how.answer_s, sizes_per_pass=how.sizes_per_pass)
    async with served(settings.health) as health, KafkaBus(settings.kafka) as bus, logs:
        watch = Watch(logs, bus, own, how, health.beat)
        health.ready = lambda: watch.trouble
        await watch.run()


def selected(settings: Settings) -> Selection:
    """Return what these settings land, and what they want measured besides."""
    given = (*settings.topic_patterns, settings.monitor.pattern)
    return Selection(
        topics=frozenset(settings.topics),
        patterns=tuple(re.compile(pattern) for pattern in given if pattern is not None),
        never=frozenset({settings.monitor.topic}),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the monitor with the settings of the file and the environment."""
    parse("monitor", __doc__, arguments)
    return serve(run)


if __name__ == "__main__":
    sys.exit(main())
