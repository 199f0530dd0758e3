"""The monitor process: `python -m binwright.monitor`."""

import sys
from collections.abc import Sequence

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.monitor.group_needs import GroupNeeds
from binwright.monitor.passes import Monitor
from binwright.monitor.sampling import KafkaLogs
from binwright.protocol.errors import SettingsError
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.runtime.health import serve_health
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.serve import run_service
from binwright.runtime.settings.programs import TopicSettings

NO_TOPICS = """\
no topics to measure. Name them in the settings file (the one that BINWRIGHT_SETTINGS names):
  topics = ["orders", "clicks"]
or in the environment:
  BINWRIGHT_TOPICS='["orders", "clicks"]'
or give regular expressions for whole names: topic_patterns (BINWRIGHT_TOPIC_PATTERNS);
or let groups' controllers ask for theirs: monitor.groups = true"""


async def run(settings: TopicSettings) -> None:
    """Measure the topics that the settings select until cancelled.

    Raises:
        SettingsError: No setting selects topics.
        BrokerUnavailable: Kafka cannot be reached at the start; the message names what to check.
    """
    config, own = settings.monitor, selected(settings)
    if not (config.groups or own.topics or own.patterns):
        raise SettingsError(NO_TOPICS)
    logs = KafkaLogs(
        settings.kafka,
        broker_timeout_s=config.broker_timeout_s,
        sizes_per_pass=config.sizes_per_pass,
        follower_fetching=config.follower_fetching,
    )
    async with (
        serve_health(settings.health, settings.kafka.ssl_certificate_file) as health,
        KafkaControlTopics(settings.kafka) as bus,
        logs,
    ):
        monitor = Monitor(logs, bus, own, config, health.beat)
        health.ready = lambda: monitor.last_error
        needs = GroupNeeds(bus, settings.needs_topic, own, monitor.measurer.set_selection)
        async with background_tasks(*([must_not_end(needs.run())] if config.groups else [])):
            await monitor.run()


def selected(settings: TopicSettings) -> Selection:
    """Return the topics that these settings land, and those that they only measure."""
    patterns = (*settings.topic_patterns, settings.monitor.pattern)
    return Selection(
        topics=frozenset(settings.topics),
        patterns=tuple(compile_pattern(pattern) for pattern in patterns if pattern is not None),
        excluded=frozenset({settings.monitor.topic, settings.needs_topic}),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the monitor with the settings of the file and the environment."""
    return run_service("monitor", __doc__, run, TopicSettings, arguments)


if __name__ == "__main__":
    sys.exit(main())
