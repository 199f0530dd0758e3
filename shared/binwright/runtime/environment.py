"""What child processes see of this process's variables."""

import os
from collections.abc import Collection, Mapping

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
