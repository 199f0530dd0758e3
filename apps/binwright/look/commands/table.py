"""`binwright table`: what people do with a table."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "list": "binwright.inspect.table_list:command",
        "describe": "binwright.inspect.table_describe:command",
        "pause": "binwright.look.commands.pause:pause",
        "resume": "binwright.look.commands.pause:resume",
        "replay": "binwright.look.commands.replay:replay",
        "erase": "binwright.look.commands.erase:erase",
        "backfill": "binwright.look.commands.backfill:backfill",
    },
    "Look at tables, have one land nothing for a while, mend one, or fill it.",
)
