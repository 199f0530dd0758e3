"""The rights of docs/reference/acls.md are enough to assign a group, and no other is used."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.integration.authorization import guarded_broker, parse_command
from tests.integration.test_acls import COMMANDS
from tests.integration.topics import create_topic

from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler.__main__ import scale
from binwright.scaler.settings import ScalerProgramSettings, ScalerSettings

from .test_assigned_members import ASSIGNED, PER_TICK, TOPIC, member, numbers, produce

pytestmark = pytest.mark.integration

DEADLINE_S = 240.0
HERE = {"orders": TOPIC, "orders-billing": TOPIC}
"""The page's topic and group, and what the helpers of this directory call both."""
RULES = [
    rule._replace(name=HERE.get(rule.name, rule.name))
    for line in COMMANDS
    if "User:scaler " in line
    for rule in parse_command(line)
]


@pytest.mark.nightly
async def test_the_documented_rights_are_enough_to_assign_a_group(tmp_path: Path) -> None:
    scaler = ScalerSettings.model_validate(
        {"period_s": 1, "zero_poll_s": 1, "rate_window_s": 10, "groups": [ASSIGNED]}
    )
    async with (
        asyncio.timeout(DEADLINE_S),
        guarded_broker(tmp_path / "kafka", ["scaler"], RULES, denies=True) as (owner, users),
        AsyncExitStack() as stack,
    ):
        await create_topic(owner, TOPIC, len(PER_TICK))
        servers = owner.bootstrap_servers
        await stack.enter_async_context(background_tasks(must_not_end(produce(servers))))
        members = [await stack.enter_async_context(member(servers)) for _ in range(2)]
        settings = ScalerProgramSettings(kafka=users["scaler"], scaler=scaler)
        with capture_logs() as logs:
            async with background_tasks(must_not_end(scale(settings))):
                # The partition with most of the load is alone, or with one other.
                while not (0 in (fewest := numbers(members)[0]) and len(fewest) < 3):  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
    assert [log for log in logs if log["event"] == "plan.published"]
    assert not [log for log in logs if "uthoriz" in str(log)]
