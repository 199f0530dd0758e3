"""`binwright lab`: experiments and simulations, offline unless they say otherwise."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "packing": "binwright.lab.commands.packing:packing",
        "paper": "binwright.lab.commands.packing:paper",
        "report": "binwright.lab.commands.report:report",
        "latency": "binwright.lab.commands.latency:latency",
        "simulate": "binwright.lab.commands.simulate:simulate",
        "sweep": "binwright.lab.commands.sweep:sweep",
        "slo": "binwright.lab.commands.slo:slo",
        "timings": "binwright.lab.commands.timings:timings",
    },
    "Run the papers' experiments and simulate your own load.",
)
