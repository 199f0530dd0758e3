"""`binwright shadow`: what consumer groups would cost under other rules."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "record": "binwright.lab.commands.shadow_record:record",
        "rank": "binwright.lab.commands.shadow_rank:rank",
        "own": "binwright.lab.commands.shadow_own:own",
    },
    "Record a cluster's consumer groups, and rank what scaling them by load would save.",
)
