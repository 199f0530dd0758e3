"""`binwright table`: what people do with a table."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "pause": "binwright.views.commands.pause:pause",
        "resume": "binwright.views.commands.pause:resume",
        "verify": "binwright.consumer.verify:command",
    },
    "Look at a table, or have it land nothing for a while.",
)
