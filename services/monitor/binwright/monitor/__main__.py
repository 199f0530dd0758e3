"""The monitor as a process: `python -m binwright.monitor`."""

import re
import sys
from collections.abc import Sequence

from binwright.core.errors import SettingsError
from binwright.core.selection import Selection
from binwright.monitor.needs import GroupNeeds
from binwright.monitor.sizes import KafkaLogs
from binwright.monitor.watch import Watch
from binwright.shell.bus import KafkaBus
from binwright.shell.health import served
from binwright.shell.run import endless, meanwhile
from binwright.shell.serve import parse, serve
from binwright.shell.settings import Settings

NO_TOPICS = """\
no topics to measure. Name them in the settings file (the one that BINWRIGHT_SETTINGS names):
  topics = ["orders", "clicks"]
or in the environment:
  BINWRIGHT_TOPICS='["orders", "clicks"]'
or give regular expressions for whole names: topic_patterns (BINWRIGHT_TOPIC_PATTERNS);
or let groups' controllers ask for theirs: monitor.groups = true"""


async def run(settings: Settings) -> None:
    """Measure the topics that the settings select until cancelled.

    Raises:
        SettingsError: Nothing says which topics.
        BrokerUnavailable: Kafka cannot be reached at the start; says what to check.
    """
    how, own = settings.monitor, selected(settings)
    if not (how.groups or own.topics or own.patterns):
        raise SettingsError(NO_TOPICS)
    logs = KafkaLogs(settings.kafka, answer_s=how.answer_s, sizes_per_pass=how.sizes_per_pass)
    async with served(settings.health) as health, KafkaBus(settings.kafka) as bus, logs:
        watch = Watch(logs, bus, own, how, health.beat)
        health.ready = lambda: watch.trouble
        needs = GroupNeeds(bus, settings.needs_topic, own, watch.want)
        async with meanwhile(*([endless(needs.run())] if how.groups else [])):
            await watch.run()


def selected(settings: Settings) -> Selection:
    """Return what these settings land, and what they want measured besides."""
    given = (*settings.topic_patterns, settings.monitor.pattern)
    return Selection(
        topics=frozenset(settings.topics),
        patterns=tuple(re.compile(pattern) for pattern in given if pattern is not None),
        never=frozenset({settings.monitor.topic, settings.needs_topic}),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the monitor with the settings of the file and the environment."""
    parse("monitor", __doc__, arguments)
    return serve(run)


if __name__ == "__main__":
    sys.exit(main())
