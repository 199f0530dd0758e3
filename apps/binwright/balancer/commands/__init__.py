"""`binwright brokers`: where replicas are, where they should be, and how they get there."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "status": "binwright.balancer.commands.status:command",
        "plan": "binwright.balancer.commands.plan:plan",
        "drain": "binwright.balancer.commands.plan:drain",
        "apply": "binwright.balancer.commands.apply:apply",
        "approve": "binwright.balancer.commands.approve:approve",
        "withdraw": "binwright.balancer.commands.approve:withdraw",
        "cancel": "binwright.balancer.commands.apply:cancel",
        "simulate": "binwright.balancer.commands.simulate:command",
    },
    "Balance a Kafka cluster: place replicas by true load, and move as little as possible.",
)
