"""`binwright schema`: the columns of tables."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {"check": "binwright.inspect.schema_check:command"}, "Look at the columns of tables."
)
