"""No input from outside makes a decoder fail in a way that nobody expects, or take too much."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from tests.fuzz.limits import LINUX, Exceeded, check
from tests.fuzz.mutations import hostile
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_valid_is_decoded(name: str) -> None:
    """Else the changed inputs would test little."""
    target, found = TARGETS[name], []
    for content in target.corpus:
        with suppress(*target.errors):
            found.append(target.decode(content))
    assert any(each is not None for each in found)


@pytest.mark.parametrize("name", TARGETS)
def test_a_decoder_returns_or_raises_its_own_error_within_bounds(name: str) -> None:
    target = TARGETS[name]

    @settings(max_examples=target.inputs)
    @given(hostile(target.corpus))
    def decode(content: bytes) -> None:
        check(target, content)

    decode()


def burn(_: bytes) -> object:
    end = time.process_time() + 1.2
    while time.process_time() < end:
        pass
    return None


def test_a_decoder_that_takes_too_long_is_found() -> None:
    with pytest.raises(Exceeded, match="s of CPU for 1 bytes"):
        check(Target(burn, (), ()), b"x")


@pytest.mark.skipif(not LINUX, reason="only Linux tells the most memory of a call")
def test_a_decoder_that_takes_much_memory_is_found() -> None:
    with pytest.raises(Exceeded, match="MB for 1 bytes"):
        # Far above the limit: what earlier tests left is freed meanwhile, and hides as much.
        check(Target(lambda content: content * 500_000_000, (), ()), b"x")


def test_a_decoder_that_raises_another_error_is_found() -> None:
    with pytest.raises(ZeroDivisionError):
        check(Target(lambda content: 1 // len(content), (ValueError,), ()), b"")
