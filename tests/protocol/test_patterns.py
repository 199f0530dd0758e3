"""A pattern takes time in proportion to the names that it is matched with, whoever wrote it."""

import pytest

from binwright.protocol.patterns import ALL_STEPS, STEPS, compile_pattern, compile_patterns

EVIL = (
    "([a-z]+)+_",
    "(a|a)*b",
    "(a*)*b",
    "(a|aa)+-b",
    "(.*a){9}b",
    "([a-z]|[a-c]|a)*_",
    "a?" * 50 + "_",
)
"""Each tries more ways than there are atoms, where ways are tried one after the other."""


@pytest.mark.timeout(60)
def test_no_pattern_takes_exponential_time() -> None:
    """100 patterns on 10,000 names of 249 characters: seconds of CPU; one takes years otherwise."""
    patterns = [compile_pattern(f"x{n}|{EVIL[n % len(EVIL)]}") for n in range(100)]
    names = [f"{'a' * 243}-{n:05}" for n in range(10_000)]

    assert not any(pattern.matches(name) for name in names for pattern in patterns)


def test_whole_names_match() -> None:
    pattern = compile_pattern("cl.*-eu|s[ei]a")
    names = ("clicks-eu", "clicks", "my-clicks-eu", "sea", "seas")
    assert [name for name in names if pattern.matches(name)] == ["clicks-eu", "sea"]


def test_a_name_that_no_topic_can_have_does_not_match() -> None:
    assert not compile_pattern(".*").matches("käse")


def test_equal_texts_are_equal_patterns() -> None:
    assert compile_pattern("a.*") == compile_pattern("a.*")
    assert compile_pattern("a.*") != compile_pattern("b.*")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(", r"not a regular expression: '\(': missing \): \("),
        (
            "(?!test-).*",
            r"invalid perl operator: \(\?! \(RE2.*exclude_topic_patterns leaves",
        ),
        (r"(a)\1", "invalid escape sequence"),
        ("k\u00e4se", "ASCII characters only"),
        ("(a{1,30}){1,30}", f"too large: .* {STEPS} at most: repeat less"),
        ("((a{100}){100}){100}", "not a regular expression"),
    ],
)
def test_what_cannot_be_matched_in_linear_time_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        compile_pattern(text)


def test_a_long_name_is_a_small_pattern() -> None:
    assert compile_pattern("x" * 500).steps < STEPS


def test_patterns_that_are_large_together_are_refused() -> None:
    texts = [f"{'x' * 490}{n}" for n in range(10)]
    assert len(compile_patterns(texts)) == 10
    with pytest.raises(ValueError, match=rf"too large together: \d+ steps, {ALL_STEPS} at most"):
        compile_patterns([*texts, *(text + "y" for text in texts)])


def test_groups_of_a_pattern_have_what_they_match() -> None:
    pattern = compile_pattern(r"shop\.(?P<region>[a-z]+)\.(?P<kind>orders|returns)?")
    assert pattern.group_names == {"region", "kind"}
    assert pattern.groups("shop.eu.orders") == {"region": "eu", "kind": "orders"}
    assert pattern.groups("shop.eu.") == {"region": "eu", "kind": ""}
    assert pattern.groups("shop.eu") is None
    assert compile_pattern("a.*").groups("ab") == {}
