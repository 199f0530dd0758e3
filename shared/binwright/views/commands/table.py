"""`binwright table`: what people do with a table."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "list": "binwright.consumer.table_list:command",
        "describe": "binwright.consumer.table_describe:command",
        "pause": "binwright.views.commands.pause:pause",
        "resume": "binwright.views.commands.pause:resume",
        "verify": "binwright.consumer.verify:command",
    },
    "Look at tables, or have one land nothing for a while.",
)
