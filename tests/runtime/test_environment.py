"""What libraries see of proxies: never one in front of this machine itself."""

from urllib.request import getproxies, proxy_bypass

import pytest

from binwright.runtime.environment import clean_environment, keep_loopback_direct


@pytest.mark.parametrize(
    ("given", "others"),
    [
        ({}, ()),
        ({"no_proxy": "lake.example, .internal"}, ("lake.example", "a.internal")),
        ({"NO_PROXY": "lake.example"}, ("lake.example",)),
        ({"no_proxy": "*"}, ("anything.example",)),
    ],
)
def test_this_machine_is_reached_directly_and_what_was_excepted_still_is(
    given: dict[str, str], others: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**given, "http_proxy": "http://proxy.example:3128"}.items():
        monkeypatch.setenv(name, value)
    keep_loopback_direct()
    keep_loopback_direct()  # by a child of this process
    for host in ("localhost", "127.0.0.1", "127.0.0.1:9092", "[::1]:15002", *others):
        assert proxy_bypass(host), host
    assert getproxies()["http"] == "http://proxy.example:3128"
    if given.get("no_proxy") != "*":
        assert not proxy_bypass("spark.example")


def test_what_grpc_reads_in_place_of_the_others_has_this_machine_too() -> None:
    environment = {"no_grpc_proxy": "lake.example"}
    keep_loopback_direct(environment)
    keep_loopback_direct(environment)
    hosts = environment["no_grpc_proxy"].split(",")
    assert hosts == ["lake.example", "localhost", "127.0.0.1", "::1", "[::1]"]


def test_servers_that_are_ours_see_no_proxy_at_all() -> None:
    seen = clean_environment({}, {"http_proxy": "http://proxy.example:3128", "PATH": "/bin"})
    assert seen == {"PATH": "/bin"}
