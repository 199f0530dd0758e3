"""Addresses of machines."""

from ipaddress import ip_address

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""What is sent to these hosts stays on this machine."""


def is_address(text: str) -> bool:
    """Return whether a text is an IP address, and no name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether an IP address or a name leads to this machine and nowhere else."""
    return ip_address(host).is_loopback if is_address(host) else host.lower() == "localhost"
