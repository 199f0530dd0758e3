"""The chart is tested on the control plane of `tests/deploy/kubernetes`."""

from tests.deploy.kubernetes.conftest import (  # noqa: F401 - fixtures
    _no_settings,
    binaries,
    nodes,
    plane,
    sandbox,
)
