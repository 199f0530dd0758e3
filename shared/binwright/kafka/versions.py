"""Requests that aiokafka lacks, from the fields of their versions; it negotiates which is sent."""

from collections.abc import Sequence
from typing import Any, ClassVar

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Schema

Field = tuple[str, Any]
"""A name, and one of aiokafka's types or what has its `encode` and `decode`."""


def version(
    api: int,
    number: int,
    request: Sequence[Field],
    response: Sequence[Field],
    *,
    is_flexible: bool = False,
) -> type[Any]:
    """Return the struct of one version of a request, which knows that of its response.

    Args:
        api: The key of the request.
        number: Of the version.
        request: Its fields, in order.
        response: Those of the response.
        is_flexible: Whether the headers of this version have tags.
    """
    shared = {"API_KEY": api, "API_VERSION": number}
    answer = type(f"Response{api}V{number}", (Response,), {**shared, "SCHEMA": Schema(*response)})
    own = {"SCHEMA": Schema(*request), "RESPONSE_TYPE": answer, "FLEXIBLE_VERSION": is_flexible}
    return type(f"Request{api}V{number}", (RequestStruct,), {**shared, **own})


class VersionedRequest(Request[RequestStruct]):  # type: ignore[misc]  # aiokafka has no types
    """A request in the newest of `VERSIONS` that the broker has; they are in ascending order."""

    API_KEY = -1  # of the subclass
    VERSIONS: ClassVar[Sequence[type[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._CLASSES = cls.VERSIONS
        cls.API_KEY = cls.VERSIONS[0].API_KEY
