"""`binwright brokers approve` and `withdraw`: what becomes of a plan that a balancer proposed."""

import asyncio
from contextlib import aclosing
from typing import Annotated

import typer

from binwright.balancer.decide.proposals import BrokerPlan, BrokersApproved
from binwright.balancer.plan_topic import PlanTopic
from binwright.balancer.settings import BalancerProgramSettings
from binwright.cli.options import CONTROLLER_S, Bootstrap, ControllerSeconds, program_settings_at
from binwright.cli.runner import run_for_result
from binwright.cli.terminal import Console
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.commands.approve import user_name
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.ports.kafka import ControlTopics

PlanNumber = Annotated[
    int, typer.Argument(help="Number of the plan, as `binwright brokers status` shows it.", min=0)
]


async def approve_plan(bus: ControlTopics, topic: str, number: int, timeout_s: float) -> None:
    """Approve a plan, and wait until a balancer carries it out.

    Raises:
        UserError: It does not wait, or is out of date by now.
        ExternalError: Neither Kafka nor a balancer answers in time.
    """
    async with aclosing(PlanTopic(bus, topic)) as plans:
        if not (await _plan_numbered(plans, topic, number)).proposed.waits:
            raise UserError(f"plan {number} waits for no approval: the mode is `act`")
        await plans.publish(BrokersApproved(plan=number, by=user_name()))
        try:
            async with asyncio.timeout(timeout_s):
                while (plan := plans.proposals.numbered(number)) and not plan.started:
                    await plans.follow()
        except TimeoutError as exc:
            raise ExternalError(
                f"no balancer carries out plan {number} after {timeout_s:g} s; it is approved: "
                "does one run, with brokers.mode `approve`?"
            ) from exc
        if plan is None:
            raise UserError(f"plan {number} is out of date; the balancer's log says why")


async def withdraw_plan(bus: ControlTopics, topic: str, number: int) -> None:
    """End a plan; a balancer that carries it out takes back what is being copied.

    Raises:
        UserError: It is over, or there is none of this number.
        ExternalError: Kafka does not answer.
    """
    async with aclosing(PlanTopic(bus, topic)) as plans:
        plan = await _plan_numbered(plans, topic, number)
        await plans.end(plan, done=False, reason=f"withdrawn by {user_name()}")


async def _plan_numbered(plans: PlanTopic, topic: str, number: int) -> BrokerPlan:
    plan = (await plans.read_if_there()).numbered(number)
    if plan is None:
        raise UserError(f"there is no plan {number} on the topic {topic}, or it is over")
    return plan


def approve(
    plan: PlanNumber,
    *,
    bootstrap_servers: Bootstrap = None,
    timeout: ControllerSeconds = CONTROLLER_S,
) -> None:
    """Approve a plan for brokers (brokers.mode "approve"): exactly this one, as shown."""
    settings = program_settings_at(BalancerProgramSettings, bootstrap_servers)

    async def work() -> None:
        async with KafkaControlTopics(settings.kafka) as bus:
            await approve_plan(bus, settings.brokers.topic, plan, timeout)

    run_for_result(work)
    Console().print(f"plan {plan} goes ahead")


def withdraw(plan: PlanNumber, *, bootstrap_servers: Bootstrap = None) -> None:
    """End a plan that a balancer proposed or carries out; what is in place stays."""
    settings = program_settings_at(BalancerProgramSettings, bootstrap_servers)

    async def work() -> None:
        async with KafkaControlTopics(settings.kafka) as bus:
            await withdraw_plan(bus, settings.brokers.topic, plan)

    run_for_result(work)
    Console().print(f"plan {plan} is withdrawn")
