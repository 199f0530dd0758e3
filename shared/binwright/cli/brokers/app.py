"""`binwright brokers`: where replicas are, where they should be, and how they get there."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "status": "binwright.cli.brokers.status:command",
        "plan": "binwright.cli.brokers.plan:plan",
        "drain": "binwright.cli.brokers.plan:drain",
        "apply": "binwright.cli.brokers.apply:apply",
        "approve": "binwright.cli.brokers.approve:approve",
        "withdraw": "binwright.cli.brokers.approve:withdraw",
        "cancel": "binwright.cli.brokers.apply:cancel",
        "simulate": "binwright.cli.brokers.simulate:command",
    },
    "Balance a Kafka cluster: place replicas by true load, and move as little as possible.",
)
