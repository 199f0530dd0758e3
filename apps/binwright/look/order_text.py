"""An order in words, for a terminal and for the page."""

from binwright.look.status import OrderStatus
from binwright.protocol.orders import moment


def order_text(order: OrderStatus) -> str:
    """Return an order with who, when, until when and why."""
    until = f" until {moment(order.until_ms)}" if order.until_ms else ""
    why = f": {order.reason}" if order.reason else ""
    return f"{order.text}{until}, by {order.by}, {moment(order.at_ms)}{why}"
