"""Values whose schema is named by a GUID, as producers write them."""

from uuid import UUID

from binwright.consumer.decode.registry_schemas import HEADER
from binwright.consumer.decode.schema_names import header_of
from binwright.protocol.ports.kafka import Headers


def in_front(guid: UUID, value: bytes) -> bytes:
    """Return a value that has an id in front with a GUID there."""
    return b"\1" + guid.bytes + value[HEADER:]


def in_header(guid: UUID, value: bytes, indexes: int = 0) -> tuple[bytes, Headers]:
    """Return a value that has an id in front without it, and headers with a GUID.

    Args:
        guid: Of the value's schema.
        value: With an id in front.
        indexes: How many bytes behind the id are the indexes of a message.
    """
    behind = value[HEADER:]
    name = b"\1" + guid.bytes + behind[:indexes]
    return behind[indexes:], [("trace", b"1"), (header_of("value"), name)]
