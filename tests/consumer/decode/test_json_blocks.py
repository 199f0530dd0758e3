"""What is read in blocks is what the strict reader reads, value by value."""

import json
import math
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from binwright.consumer.decode.json_blocks import (
    LONGEST,
    BlockReader,
    BlockRefused,
    in_blocks,
    suspects,
)
from binwright.consumer.decode.json_records import MOST_NESTED, RecordReader
from binwright.consumer.decode.new_fields import NewFields
from binwright.consumer.decode.one_by_one import Bad
from binwright.tables.columns import parse_columns

COLUMNS = parse_columns(
    "b boolean, t tinyint, i int, l bigint, f float, d double, n decimal(7,3), w decimal(38,10), "
    "s string, day date, at timestamp, a array<bigint>, m array<array<string>>, "
    "o struct<x:int,y:struct<z:string,at:array<timestamp>,f:float>,day:date,n:decimal(3,3)>, "
    "os array<struct<price:double,at:timestamp>>"
)
READER, NEW = RecordReader(COLUMNS), NewFields(COLUMNS)


def array(values: list[bytes]) -> "pa.BinaryArray":
    return pa.array(values, pa.binary())


def bits(value: Any) -> Any:
    """Tell -0.0 from 0.0."""
    if isinstance(value, float):
        return value, math.copysign(1, value)
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return [bits(item) for item in value] if isinstance(value, list) else value


def check(values: list[bytes]) -> "pa.Array[Any] | None":
    """Read values that are no suspects in a block, and compare each with the strict reader's."""
    plain = [
        v for v, is_suspect in zip(values, suspects(array(values)), strict=True) if not is_suspect
    ]
    if not plain:
        return None
    try:
        found, has_more = BlockReader(COLUMNS).read(array(plain))
    except BlockRefused:
        return None
    found.validate(full=True)
    strict = [READER.read(value) for value in plain]
    assert not [bad for bad in strict if isinstance(bad, Bad)]
    left = [NEW.rest(orjson.loads(value)) for value in plain]
    assert has_more or left == [None] * len(plain)
    expected: pa.Array[Any] = pa.array(strict, READER.type)
    assert found.type == expected.type
    assert bits(found.to_pylist()) == bits(expected.to_pylist())
    return found


GOOD: dict[str, Any] = {
    "b": True, "t": -128, "i": 7, "l": 2**63 - 1, "f": 0.1, "d": 0.1, "n": 1.25, "w": "0.1",
    "s": "é😀", "day": "2026-11-23", "at": "2026-11-23T10:11:12.123456789Z", "a": [1, None],
    "m": [["x"], [], None], "o": {"x": 1, "y": {"z": "", "at": ["2026-11-23T10:11:12+01:00"]}},
    "os": [{"price": 1.5}, {}, None, {"at": "2026-11-23 10:11Z"}], "unknown": {"q": [1, {}]},
}  # fmt: skip
WHOLE = orjson.dumps(GOOD)


def test_valid_values_are_read_in_a_block() -> None:
    """Else the comparisons below compare nothing."""
    found = check([WHOLE, b"{}", b' {"a":[],"o":null}\n', json.dumps(GOOD, indent=2).encode()])
    assert found is not None
    assert len(found) == 4


def test_timestamps_without_a_zone_are_read_in_a_block() -> None:
    assert check([b'{"at":"2026-11-23T10:11:12.5"}', b'{"at":"2026-11-23 10:11"}']) is not None


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from([2**7, 2**31, 2**63, 2**64, 10**38]).flatmap(
        lambda n: st.sampled_from([str(n), str(n - 1), str(-n), str(-n - 1)])
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["-0", "-0.0", "0e0", "1E400", "1.8e308", "1e309", "123456789e305", "NaN", "-Infinity",
         "Inf", "Infinity", "01", "1.", ".5", "+1", "-", "3.4028235e38", "3.4028236e38", "1e-400",
         "9" * 250, "9" * 400, "0." + "9" * 400, "1e0000001", "2.5e-5", "5e-324", "1e22"]
    ),
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=8).map(lambda t: json.dumps(t, ensure_ascii=False)),
    st.text(max_size=8).map(json.dumps),
    st.sampled_from(
        ['"\\ud800"', '"\\udc00"', '"\\ud83d\\ude00"', '"\\ud800\\ud800"', '"\\u0000"', '"\n"',
         '"\x01"', '"\x7f"', '"} null"', '"}\\n{"', '", NaN,"', '"\\/"', '"\\x"', '"]}', '"1.5"',
         '"-0"', '"+.5"', '"1e2"', '"1e-30"', '" 1"', '"0x1"', '"1_0"', '"\u0663"',
         '"00000000.1"', '"5."', '"."', '""']
    ),
    st.from_regex(r'"[+-]?[0-9]{0,12}\.?[0-9]{0,12}([eE][+-]?[0-9]{1,2})?"', fullmatch=True),
)  # fmt: skip
TIMES = st.one_of(
    st.datetimes().map(lambda t: f'"{t.isoformat()}"'),
    st.datetimes().map(lambda t: f'"{t.isoformat()}Z"'),
    st.dates().map(lambda d: f'"{d}"'),
    st.from_regex(
        r'"[0-9]{4}-[0-3][0-9]-[0-3][0-9]([T t][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,9})?)?'
        r'(Z|z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"',
        fullmatch=True,
    ),
)
SPACE = st.sampled_from(["", "", "", " ", "\t", "\r\n", "\n"])


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keys = st.sampled_from(
        ['"b"', '"t"', '"i"', '"l"', '"f"', '"d"', '"n"', '"w"', '"s"', '"day"', '"at"', '"a"',
         '"m"', '"o"', '"os"', '"x"', '"y"', '"z"', '"price"', '"A"', '"\\u0061"', '"unknown"',
         '"\\ud800"']
    )  # fmt: skip
    fields = st.lists(st.builds("{0}{1}:{1}{2}".format, keys, SPACE, values), max_size=5)
    return st.builds(lambda f, s: f"{{{s}{f'{s},'.join(f)}{s}}}", fields, SPACE)


LEAVES = NUMBERS | TEXTS | TIMES | st.sampled_from(["true", "false", "null", "nul", "{}", "[]"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: objects(inner) | st.lists(inner, max_size=3).map(lambda a: f"[{','.join(a)}]"),
    max_leaves=6,
)
FITTING = st.one_of(
    *(
        st.builds(f'{{{{"{name}":{{}}}}}}'.format, texts)
        for name, texts in {
            "i": NUMBERS, "l": NUMBERS, "f": NUMBERS, "d": NUMBERS, "n": NUMBERS | TEXTS,
            "w": NUMBERS | TEXTS, "s": TEXTS, "day": TIMES, "at": TIMES, "unknown": VALUES,
            "a": st.lists(NUMBERS, max_size=3).map(lambda a: f"[{','.join(a)}]"),
        }.items()
    )
)  # fmt: skip
RECORDS = (FITTING | objects(VALUES)).map(lambda text: text.encode(errors="surrogatepass"))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a value that was cut, or whose bytes were replaced, removed or doubled."""
    value = bytearray(draw(RECORDS | st.just(WHOLE)))
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(value)))
        end = min(len(value), begin + draw(st.integers(0, 4)))
        insert = draw(
            st.sampled_from(
                [b"", b"{", b"}", b"}{", b"} null {", b"\n", b"\0", b"\xff", b"\\", b'"', b",",
                 b"[", b"-", b"]", b"}\n{", b"{}", b"},{", b"NaN", b"\xed\xa0\x80", b"\xc3",
                 b"//", b"1", b"e", b":"]
            )
        )  # fmt: skip
        value[begin:end] = insert
    return bytes(value)


@settings(max_examples=examples(2000), deadline=None)
@given(RECORDS | damaged())
@example(b'{"d":-0}')
@example(b'{"unknown":NaN}')
@example(b'{"unknown":-Infinity }')
@example(b'{"unknown":1.8e308}')
@example(b'{"unknown":' + b"9" * 250 + b"e99}")
@example(b'{"unknown":"\xff"}')
@example(b'{"n":1000000.0}')
@example(b'{"w":80000000000000000000000E8}')
@example(b'{"w":"34028236692093846346337460743176821145"}')
@example(b'{"a":1}\n null{}')
def test_a_value_is_read_as_the_strict_reader_reads_it(value: bytes) -> None:
    check([value])


@settings(max_examples=examples(1000), deadline=None)
@given(st.lists(RECORDS | damaged() | st.just(WHOLE), min_size=2, max_size=6))
@example([b'{"i":1}{"i":2}', b'{"o":{"x":1}', b',"i":3}'])
@example([b'{"i":1}{"i":2}', b'{"os":[', b"{}]}"])
@example([b'{"i":1}{}', b"{}\0{}"])
@example([b'{"i":1}{"o":{"x":1}', b'{"i":2}}'])
@example([b'{"i":1} {"i":2}', b"{}\nnull {}"])
@example([b'{"s":"}', b'{"}', b"{}{}"])
def test_a_value_does_not_change_how_another_is_read(values: list[bytes]) -> None:
    check(values)


@pytest.mark.parametrize(
    "value",
    [
        b"", b" \n", b"null", b"7", b"[{}]", b"x{}", b"{}x", b"{", b"}", b"\xef\xbb\xbf{}",
        b"{}\0{}", b"{} null{}", b'{"d":NaN}', b'{"d":[1, -Inf]}', b'{"d":-0}', b'{"d":1e308}',
        b'{"d":' + b"9" * 200 + b"}",
        b'{"q":' + b"[" * (MOST_NESTED + 1) + b"]" * (MOST_NESTED + 1) + b"}",
        b'{"q":"' + b"x" * LONGEST + b'"}',
    ],
)  # fmt: skip
def test_what_arrow_may_read_differently_is_not_given_to_it(value: bytes) -> None:
    assert suspects(array([b"{}", value])).tolist() == [False, True]


@pytest.mark.parametrize(
    "value",
    [
        WHOLE,
        b' {"s":"Infinity, NaN"}\r\n',
        b'{"s":"0e1234ab-4e123-[[["}',
        b'{"d":1e99,"q":-0.5}',
        b'{"q":"' + b"x" * 600 + b'"}',
    ],
)
def test_common_values_are_no_suspects(value: bytes) -> None:
    assert suspects(array([value])).tolist() == [False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a array<struct<b:decimal(5,2),at:timestamp>>", True),
        ("a binary", False),
        ("a int, b array<binary>", False),
        ("a struct<b:map<string,int>>", False),
    ],
)
def test_types_without_the_same_meaning_in_arrow_are_not_read_in_blocks(
    text: str, *, expected: bool
) -> None:
    assert in_blocks(parse_columns(text)) == expected
