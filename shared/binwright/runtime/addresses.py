"""Addresses of machines."""

from ipaddress import ip_address


def is_address(text: str) -> bool:
    """Return whether a text is an IP address, and no name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether what is sent to an IP address or a name stays on this machine."""
    return ip_address(host).is_loopback if is_address(host) else host.lower() == "localhost"
