"""What this process's libraries and its children see of its variables."""

import os
from collections.abc import Collection, Mapping, MutableMapping

LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
_NO_PROXY = ("no_proxy", "NO_PROXY")

_PASSED_ON = {
    "HOME",
    "LANG",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "PYTHONPATH",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
}


def keep_loopback_direct(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have libraries reach this machine itself without the proxy that a person has set.

    gRPC, urllib, requests and the object stores' clients read `http_proxy` by themselves, and ask
    the proxy for 127.0.0.1 too. Proxies are kept: downloads need them.
    """
    own = next((value for name in _NO_PROXY if (value := environment.get(name))), "")
    for name in _NO_PROXY:
        environment[name] = _with_loopback(own)
    if only := environment.get("no_grpc_proxy"):  # in place of the others, for gRPC
        environment["no_grpc_proxy"] = _with_loopback(only)


def _with_loopback(hosts: str) -> str:
    """Return a list of hosts that no proxy stands before, with this machine; "*" are all."""
    named = [name for each in hosts.split(",") if (name := each.strip())]
    if named == ["*"]:
        return hosts
    return ",".join([*named, *(host for host in LOOPBACK if host not in named)])


def grpc_proxy(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the variable that names the proxy through which gRPC reaches other machines."""
    asked = ("grpc_proxy", "https_proxy", "http_proxy")  # in gRPC's order
    return next((name for name in asked if environment.get(name)), None)


def clean_environment(
    own: Mapping[str, str],
    environment: Mapping[str, str] = os.environ,
    *,
    pass_on: Collection[str] = (),
) -> dict[str, str]:
    """Return what a child sees: a few of our variables, those to `pass_on`, and its `own`.

    Passwords stay here. So do JAVA_TOOL_OPTIONS, CLASSPATH, SPARK_* or KAFKA_* of a person's own
    installations, which would bend a server that is ours.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name in _PASSED_ON or name.startswith("LC_") or name in pass_on
    }
    return {**kept, **own}
