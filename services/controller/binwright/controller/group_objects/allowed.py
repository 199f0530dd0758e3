"""What an object may name: group, topics, where it lands, which Spark gets the lake's token.

The controller's settings list it, because consumers of all objects use the same accounts.
"""

from collections.abc import Iterator

from binwright.controller.settings import ControllerProgramSettings
from binwright.kubernetes.settings import KubernetesSettings, in_namespace
from binwright.protocol.errors import SettingsError
from binwright.protocol.selection import is_of_a_system
from binwright.runtime.settings.consumer import absolute
from binwright.runtime.settings.group import STAGING, Settings
from binwright.runtime.spark_url import redacted_url
from binwright.runtime.storage_path import is_at_or_below, storage_parts

SHOWN = 10
"""Of a list's names in a message."""


def check_allowed(settings: Settings, base: ControllerProgramSettings, namespace: str) -> None:
    """Check what an object's settings name against those of the controller, `base`.

    Raises:
        SettingsError: The object may not name one of them; says which setting would allow it.
    """
    faults = [
        *_faults_of_group(settings.group, base.kubernetes, namespace),
        *_faults_of_topics(settings, base),
        *_faults_of_places(settings, base, namespace),
        *_faults_of_servers(settings, base, namespace),
    ]
    if faults:
        raise SettingsError(f"the spec is not allowed: {'; '.join(faults)}")


def may_name(group: str, kubernetes: KubernetesSettings, namespace: str) -> bool:
    """Whether an object of this namespace may be of this group."""
    return group.startswith(in_namespace(kubernetes.group_prefix, namespace))


def _faults_of_group(group: str, kubernetes: KubernetesSettings, namespace: str) -> Iterator[str]:
    if not may_name(group, kubernetes, namespace):
        prefix = in_namespace(kubernetes.group_prefix, namespace)
        yield (
            f"group {group} does not begin with {prefix} (kubernetes.group_prefix): create this "
            f"object again with spec.group: {prefix}{group}"
        )


def _faults_of_topics(settings: Settings, base: ControllerProgramSettings) -> Iterator[str]:
    measured = base.monitor.topic, base.needs_topic
    named = [each for each in settings.topics if is_of_a_system(each) or each in measured]
    if named:  # they have other groups' offsets, orders and rates
        yield (
            f"topics {', '.join(named[:SHOWN])}: Kafka's own, or of a group of binwright's; "
            "only the settings of a group may name them"
        )


def _faults_of_places(
    settings: Settings, base: ControllerProgramSettings, namespace: str
) -> Iterator[str]:
    own = absolute(base.lake.path), base.staging.path
    listed = base.kubernetes.sinks or tuple(filter(None, own))
    prefixes = [in_namespace(prefix, namespace) for prefix in listed]
    for name, path, unset in (
        ("path", settings.lake.path, own[0]),
        ("staging", settings.staging.path, own[1]),
    ):
        if path is None or path == unset:
            continue
        below = [prefix for prefix in prefixes if is_at_or_below(path, prefix)]
        if not below:
            yield (
                f"sink.{name} {path} is not below {' or '.join(prefixes)}, or not written plainly: "
                "kubernetes.sinks of the controller's settings lists what is allowed"
            )
        elif not all(_is_free(path, prefix, settings.group) for prefix in below):
            yield f"sink.{name} {path}: a directory of Delta, or of another group's staged files"


def _is_free(path: str, prefix: str, group: str) -> bool:
    """Whether no directory below `prefix` is one that only programs name, but this group's own."""
    names = storage_parts(path) or ()
    ours = STAGING not in names or names[names.index(STAGING) + 1 :][:1] == (group,)
    inner = names[len(storage_parts(prefix) or ()) :]
    return ours and not any(name.startswith("_") for name in inner if name != STAGING)


def _faults_of_servers(
    settings: Settings, base: ControllerProgramSettings, namespace: str
) -> Iterator[str]:
    if settings.lake.spark == base.lake.spark:
        return
    listed = base.kubernetes.spark_servers or base.lake.servers
    servers = [in_namespace(server, namespace) for server in listed]
    for server in settings.lake.servers:
        if server not in servers:  # a parameter may send the token in clear text
            allowed = " or ".join(map(redacted_url, servers))
            yield (
                f"sink.spark {redacted_url(server)} is not {allowed}, written in the same way with "
                "the same parameters: kubernetes.spark_servers of the controller's settings lists "
                "what is allowed"
            )
