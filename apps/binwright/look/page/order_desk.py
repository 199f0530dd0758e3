"""Gives the orders that browsers send: those of `binwright group`, `approve` and `table pause`."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from binwright.look.commands.approve import approve
from binwright.look.commands.give_order import (
    OrderOptions,
    Signature,
    adopt_order,
    give_order,
    pin_order,
    signature,
    unadopt_order,
    unpin_order,
)
from binwright.look.commands.pause import follow
from binwright.look.follower import Connect
from binwright.look.status import Status
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.model import Slot
from binwright.protocol.orders import (
    MOST_CONSUMERS,
    NAME_LENGTH,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    ScaleOrder,
    TableOrder,
    describe,
)
from binwright.runtime.clock import wall_ms
from binwright.runtime.http import Posted, Response, json_response
from binwright.runtime.settings.group import Settings

ORDER_S = 60.0
"""As long as Kafka, a controller or a writer may take to follow; see `http.POSTED_S`."""

CORDONS: dict[str, Literal["cordoned", "drained", "open"]] = {
    "cordon": "cordoned",
    "drain": "drained",
    "uncordon": "open",
}
WITH_REASON = {"adopt", "freeze", "pin", "cordon", "drain", "scale", "pause"}
ABOUT_NAMES = {
    **dict.fromkeys(("pin", "unpin"), "a partition or topic"),
    **dict.fromkeys(("pause", "resume"), "a table"),
    "unadopt": "a setting",
}
ABOUT_NUMBERS = dict.fromkeys(("pin", *CORDONS), "a consumer") | {
    "approve": "a plan",
    "adopt": "a proposal",
}


OrderName = Literal[
    "adopt",
    "approve",
    "cordon",
    "drain",
    "freeze",
    "pause",
    "pin",
    "resume",
    "scale",
    "unadopt",
    "uncordon",
    "unfreeze",
    "unpin",
    "unscale",
]


class OrderRequest(BaseModel):
    """What a browser sends."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    order: OrderName
    what: Annotated[str, Field(max_length=300)] = ""  # a partition, topic, table or setting
    number: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """Of a consumer, a plan or a proposal; or a count."""
    reason: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class OrderDesk:
    """Gives the orders of browsers to the page's group.

    Attributes:
        settings: Of the group.
        connect: Opens a bus that may write.
        report: Called with each order that was given, and by whom.
        now_ms: The clock that orders are dated by.
    """

    settings: Settings
    connect: Connect
    report: Callable[[str], None]
    now_ms: Callable[[], int] = wall_ms

    async def take(self, posted: Posted) -> Response:
        """Give an order; return what it says, or what is wrong with it."""
        user = "".join(filter(str.isprintable, posted.user))
        by = f"{user or 'a browser'} by the page"[:NAME_LENGTH]
        try:
            asked = parse_order(posted.body)
            text = await self._give(asked, by)
        except ExternalError as exc:
            return json_response(orjson.dumps({"error": str(exc)}), HTTPStatus.SERVICE_UNAVAILABLE)
        except UserError as exc:
            return json_response(orjson.dumps({"error": str(exc)}), HTTPStatus.BAD_REQUEST)
        self.report(f"{by}: {text}")
        return json_response(orjson.dumps({"text": text}))

    async def _give(self, asked: OrderRequest, by: str) -> str:
        group, number = self.settings.group, asked.number or 0
        match asked.order:
            case "approve":
                await approve(self.connect, group, number, ORDER_S, by)
                return f"plan {number} goes ahead"
            case "pause" | "resume":
                order = TableOrder(
                    topic=asked.what,
                    paused=asked.order == "pause",
                    by=by,
                    reason=asked.reason,
                    at_ms=self.now_ms(),
                )
                done = await follow(self.connect, group, order, ORDER_S)
                return f"the table {asked.what} is {asked.order}d: {done}"
        options = OrderOptions(group, None, ORDER_S, asked.reason, asked.until)
        who = signature(options, self.now_ms(), by)
        published = await give_order(
            self.connect, self.settings, group, lambda seen: make_order(asked, seen, who), ORDER_S
        )
        return describe(published)


def make_order(asked: OrderRequest, seen: Status, who: Signature) -> GroupOrder:
    """Return the order of a group that is asked for.

    Raises:
        UserError: The group has nothing of the name.
    """
    number = asked.number or 0
    match asked.order:
        case "freeze" | "unfreeze":
            return FreezeOrder(frozen=asked.order == "freeze", **who)
        case "pin":
            return pin_order(seen, who, asked.what, number)
        case "unpin":
            return unpin_order(seen, who, asked.what)
        case "adopt":
            return adopt_order(seen, who, number)
        case "unadopt":
            return unadopt_order(who, asked.what)
        case "scale" | "unscale":
            return ScaleOrder(consumers=asked.number if asked.order == "scale" else None, **who)
        case other:
            return CordonOrder(slot=Slot(number), state=CORDONS[other], **who)


def parse_order(body: bytes) -> OrderRequest:
    """Return what a browser asks for.

    Raises:
        UserError: It is no order, or lacks something.
    """
    try:
        asked = OrderRequest.model_validate_json(body)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the order"
        raise UserError(f"{where}: {first['msg']}") from exc
    order = asked.order
    if order in WITH_REASON and not asked.reason.strip():
        raise UserError("a reason is needed, for those who look at it")
    if order in ABOUT_NAMES and not asked.what:
        raise UserError(f"{order} is about {ABOUT_NAMES[order]}: none is named")
    if order in ABOUT_NUMBERS and asked.number is None:
        raise UserError(f"{order} needs the number of {ABOUT_NUMBERS[order]}")
    if order == "scale" and asked.number not in range(1, MOST_CONSUMERS + 1):
        raise UserError(f"scale needs a number of consumers from 1 to {MOST_CONSUMERS:,}")
    return asked
