"""The monitor as a process: `python -m binwright.monitor`."""

import sys

from binwright.core.errors import SettingsError
from binwright.monitor.sizes import KafkaLogs
from binwright.monitor.watch import Watch
from binwright.shell.bus import KafkaBus
from binwright.shell.serve import serve
from binwright.shell.settings import Settings

NO_TOPICS = """\
no topics to measure. Name them in the settings file (the one that BINWRIGHT_SETTINGS names):
  topics = ["orders", "clicks"]
or in the environment:
  BINWRIGHT_TOPICS='["orders", "clicks"]'"""


async def run(settings: Settings) -> None:
    """Measure the settings' topics until cancelled.

    Raises:
        SettingsError: No topic is named.
        BrokerUnavailable: Kafka cannot be reached at the start; says what to check.
    """
    if not settings.topics:
        raise SettingsError(NO_TOPICS)
    async with KafkaBus(settings.kafka) as bus, KafkaLogs(settings.kafka) as logs:
        await Watch(logs, bus, settings.topics, settings.monitor).run()


def main() -> int:
    """Run the monitor with the settings of the file and the environment."""
    return serve(run)


if __name__ == "__main__":
    sys.exit(main())
