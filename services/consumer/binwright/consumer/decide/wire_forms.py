"""Recognises by its first bytes what a value is that could not be decoded: for reasons.

Which form a producer writes is the first thing that somebody asks who looks at bad records.
"""

from collections.abc import Collection

BY_ID, BY_GUID, APICURIO, GLUE = 5, 17, 9, 18  # bytes in front of a value, at least
MOST_FIELDS = 64  # of what may be Protobuf that are looked at
MOST_IN_VARINT = 10  # bytes
_APICURIO_HEADERS = "apicurio."
_SCHEMA_HEADERS = frozenset(["__value_schema_id", "__key_schema_id"])
"""Headers that name a schema: then nothing stands in front of a value."""
_PREFIXES = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
    (b"\x04\x22\x4d\x18", "LZ4"),
    (b"\xff\x06\x00\x00sNaPpY", "Snappy"),
    (b"\x82SNAPPY\0", "Snappy"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"\x78\x9c", "zlib"),
    (b"\x78\xda", "zlib"),
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"{\0", "UTF-16 without its mark"),
    (b"[\0", "UTF-16 without its mark"),
    (b"\0{\0", "UTF-16 without its mark"),
    (b"\0[\0", "UTF-16 without its mark"),
    (b"\xef\xbb\xbf", "text with a byte order mark of UTF-8"),
    (b"Obj\x01", "a file of Avro, an object container"),
    (b"\xc3\x01", "a single object of Avro, with a fingerprint of its schema"),
    (b"PAR1", "a file of Parquet"),
    (b"\xac\xed\0\x05", "an object of Java"),
    (b"\xd9\xd9\xf7", "CBOR"),
)


def recognised(value: bytes, headers: Collection[str] = (), *, by_schema: bool) -> str:
    """Return what a value is by its first bytes, in words; empty: nothing that is known.

    Args:
        value: One that its table cannot decode.
        headers: The names of its record's headers.
        by_schema: Whether values are expected to name a schema of a registry.
    """
    for prefix, name in _PREFIXES:
        if value.startswith(prefix):
            return name
    if value[:1] == b"\x03" and value[1:2] in {b"\0", b"\x05"} and len(value) >= GLUE:
        return "a value of AWS Glue's registry, which is not read"
    if any(name.startswith(_APICURIO_HEADERS) for name in headers):
        return "a value of Apicurio's own serializer, whose headers name its schema"
    if value[:BY_ID] == bytes(BY_ID) and len(value) >= APICURIO and any(value[BY_ID:APICURIO]):
        number = int.from_bytes(value[1:APICURIO], "big")
        return f"a value of Apicurio's own serializer, with the id {number} in eight bytes"
    if by_schema:
        return "" if any(name in _SCHEMA_HEADERS for name in headers) else _of_schema(value)
    return _of_no_schema(value)


def _of_schema(value: bytes) -> str:
    """Recognise a value where one with a schema's name in front is expected."""
    if value.lstrip()[:1] in {b"{", b"["}:
        return "JSON without a schema in front"
    return "Protobuf without a schema in front, perhaps" if _may_be_protobuf(value) else ""


def _of_no_schema(value: bytes) -> str:
    """Recognise a value where one without a schema's name is expected."""
    if value[:1] == b"\0" and len(value) >= BY_ID:
        number = int.from_bytes(value[1:BY_ID], "big")
        return f"a value with a schema of a registry in front, by the id {number}"
    if value[:1] == b"\x01" and len(value) >= BY_GUID:
        return f"a value with a schema of a registry in front, by the GUID {value[1:BY_GUID].hex()}"
    return "Protobuf, perhaps" if _may_be_protobuf(value) else ""


def _may_be_protobuf(value: bytes) -> bool:
    """Whether a value is fields of a message from its first byte on, and no text."""
    try:
        if value.decode().isprintable():
            return False
    except UnicodeDecodeError:
        pass
    at = 0
    for _ in range(MOST_FIELDS):
        if at == len(value):
            return at > 0
        tag, at = _varint(value, at)
        match tag & 7:
            case 0:
                _, at = _varint(value, at)
            case 1:
                at += 8
            case 2:
                size, at = _varint(value, at)
                at += size
            case 5:
                at += 4
            case _:
                return False
        if not tag >> 3 or at > len(value):
            return False
    return True


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """Return a varint and where it ends: behind the value if it does not end in it."""
    number = 0
    for n, byte in enumerate(value[at : at + MOST_IN_VARINT]):
        number |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return number, at + n + 1
    return number, len(value) + 1
