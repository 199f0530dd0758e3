"""`binwright lab`: experiments and simulations, offline unless they say otherwise."""

from binwright.cli.lazy_group import lazy_app

app = lazy_app(
    {
        "packing": "binwright.cli.lab.packing:packing",
        "paper": "binwright.cli.lab.paper:paper",
        "report": "binwright.cli.lab.report:report",
        "latency": "binwright.cli.lab.latency:latency",
        "simulate": "binwright.cli.lab.simulate:simulate",
        "sweep": "binwright.cli.lab.sweep:sweep",
        "slo": "binwright.cli.lab.slo:slo",
        "timings": "binwright.cli.lab.timings:timings",
    },
    "Run the papers' experiments and simulate your own load.",
)
