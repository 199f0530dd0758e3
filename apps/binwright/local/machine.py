"""What Kafka and Spark need of this machine, told before they start: they would die of it later."""

import os
import pwd
import resource

from binwright.protocol.errors import SettingsError

DESCRIPTORS = 1024
"""Files that a server may open at least: Spark has 400 jars, Kafka some for each partition."""
ENOUGH = 65_536


def check_descriptors() -> None:
    """Let children open as many files as they may.

    Raises:
        SettingsError: They may not open enough.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if most < DESCRIPTORS:
        raise SettingsError(
            f"a process may open {hard} files here (ulimit -Hn), and Kafka and Spark need "
            f"{DESCRIPTORS}: raise the limit, or name servers that run elsewhere "
            "(--bootstrap-servers, --spark)"
        )
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def check_user() -> None:
    """Check that this process's user has a name: Hadoop, in Spark, cannot log in without.

    Raises:
        SettingsError: It has none.
    """
    user = os.geteuid()
    try:
        pwd.getpwuid(user)
    except KeyError as exc:
        raise SettingsError(
            f"user id {user} has no name, and Spark does not start without: add a line for it to "
            "/etc/passwd, run as a user that has one, or name a Spark that runs (--spark)"
        ) from exc
