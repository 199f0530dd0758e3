"""Types of settings' values."""

import pytest
from pydantic import TypeAdapter, ValidationError

from binwright.protocol.section import TopicPatterns, WebAddress, check_distinct


def test_a_web_address_has_no_slash_at_its_end() -> None:
    adapter = TypeAdapter[str](WebAddress)
    assert adapter.validate_python("https://there:8081/x/") == "https://there:8081/x"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("ftp://there", "http or https"),
        ("http://", "http or https"),
        ("http://there?x=1", "without query"),
        ("http://there#x", "without query"),
        ("http://me@there", "no user"),
        ("http://:secret@there", "no user"),
    ],
)
def test_other_web_addresses_are_refused(address: str, text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        TypeAdapter(WebAddress).validate_python(address)


def test_patterns_are_those_that_compile_also_together() -> None:
    adapter = TypeAdapter[tuple[str, ...]](TopicPatterns)
    assert adapter.validate_python(["a.*", "b"]) == ("a.*", "b")
    with pytest.raises(ValidationError, match="not a regular expression"):
        adapter.validate_python(["("])


def test_names_that_stand_twice_are_named() -> None:
    check_distinct(["a", "b"])
    with pytest.raises(ValueError, match=r"^topics: named twice: a, b$"):
        check_distinct(["b", "a", "b", "a"], "topics: ")
