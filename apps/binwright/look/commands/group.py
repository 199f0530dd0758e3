"""`binwright group`: what people order a group to do."""

from binwright.cli.lazy_group import lazy_app

_ORDERS = "binwright.look.commands.group_orders"
app = lazy_app(
    {
        "orders": f"{_ORDERS}:orders",
        "freeze": f"{_ORDERS}:freeze",
        "unfreeze": f"{_ORDERS}:unfreeze",
        "pin": f"{_ORDERS}:pin",
        "unpin": f"{_ORDERS}:unpin",
        "cordon": f"{_ORDERS}:cordon",
        "drain": f"{_ORDERS}:drain",
        "uncordon": f"{_ORDERS}:uncordon",
        "scale": f"{_ORDERS}:scale",
        "unscale": f"{_ORDERS}:unscale",
        "adopt": f"{_ORDERS}:adopt",
        "unadopt": f"{_ORDERS}:unadopt",
    },
    "Steer a group: freeze moves, pin partitions, drain consumers, set their number and settings.",
)
