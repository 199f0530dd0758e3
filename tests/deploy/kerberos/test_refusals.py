"""Connections that cannot be: one sentence each, which names what to check."""

import re
from collections.abc import Callable, Mapping

import pytest
from tests.deploy.kerberos.kerberos_broker import OWNER, READER, SERVICE, KerberosBroker
from tests.integration.security.commands import BINWRIGHT
from tests.programs import ProgramResult, run_program

pytestmark = [pytest.mark.kerberos, pytest.mark.integration]

DEADLINE_S = 60.0
AHEAD = ("faketime", "-m", "--exclude-monotonic", "-f", "+1h")
"""What runs a program with a clock that is fast."""

Environment = Callable[[KerberosBroker], Mapping[str, str]]


def status(environment: Mapping[str, str], *runner: str) -> ProgramResult:
    """Run `binwright status` to its end."""
    wide = {**environment, "COLUMNS": "250"}
    return run_program(*runner, *BINWRIGHT, "status", timeout_s=DEADLINE_S, environment=wide)


def refused(done: ProgramResult) -> str:
    """Return the one sentence of a command that could not use Kafka."""
    assert done.returncode == 1, done.stderr
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("binwright: Kafka cannot be used: "), line
    return line


def no_keytab(kerberos: KerberosBroker) -> Mapping[str, str]:
    return kerberos.environment()


def old_keytab(kerberos: KerberosBroker) -> Mapping[str, str]:
    keytab = kerberos.kdc.add("old")
    kerberos.kdc.renew("old", "new")
    return {**kerberos.environment(), "KRB5_CLIENT_KTNAME": str(keytab)}


def deleted_principal(kerberos: KerberosBroker) -> Mapping[str, str]:
    keytab = kerberos.kdc.add("gone")
    kerberos.kdc.delete("gone")
    return {**kerberos.environment(), "KRB5_CLIENT_KTNAME": str(keytab)}


def other_host(kerberos: KerberosBroker) -> Mapping[str, str]:
    return kerberos.environment(OWNER, bootstrap_servers=f"localhost:{kerberos.port}")


def other_service(kerberos: KerberosBroker) -> Mapping[str, str]:
    return kerberos.environment(OWNER, sasl_kerberos_service_name="broker")


def other_key(kerberos: KerberosBroker) -> Mapping[str, str]:
    """Name a principal that the KDC knows, and whose key the broker does not have."""
    kerberos.kdc.add(f"{SERVICE}/elsewhere")
    return kerberos.environment(OWNER, sasl_kerberos_domain_name="elsewhere")


def no_configuration(kerberos: KerberosBroker) -> Mapping[str, str]:
    return {**kerberos.environment(OWNER), "KRB5_CONFIG": "/no/such/krb5.conf"}


REFUSALS: dict[str, tuple[Environment, str]] = {
    "no keytab": (
        no_keytab,
        r"No Kerberos credentials .* Check that KRB5_CLIENT_KTNAME \(unset\) is a keytab that can",
    ),
    "old keytab": (
        old_keytab,
        r"(Decrypt integrity|Preauthentication).* KRB5_CLIENT_KTNAME \(.*\) has the current key",
    ),
    "deleted principal": (
        deleted_principal,
        r"'gone@BINWRIGHT.TEST' not found .* KRB5_CLIENT_KTNAME \(.*\) has the current key of a",
    ),
    "other host": (
        other_host,
        "kafka/localhost@BINWRIGHT.TEST not found .* Check that the KDC knows kafka/localhost: ",
    ),
    "other service": (
        other_service,
        "broker/127.0.0.1@BINWRIGHT.TEST not found .* kafka.sasl_kerberos_service_name, and",
    ),
    "other key": (
        other_key,
        "SaslAuthenticationFailed: .* Check .* the current key of kafka/elsewhere, .* the clocks",
    ),
    "no configuration": (
        no_configuration,
        r"Cannot find KDC for realm .* where KRB5_CONFIG \(/no/such/krb5.conf\) says",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_command_names_what_to_check_in_one_sentence(kerberos: KerberosBroker, name: str) -> None:
    environment, sentence = REFUSALS[name]
    line = refused(status(environment(kerberos)))
    assert re.search(sentence, line), line


def test_a_ticket_that_has_expired_is_named(kerberos: KerberosBroker) -> None:
    tickets = kerberos.kdc.log_in(READER, kerberos.keytabs[READER])
    line = refused(status({**kerberos.environment(), "KRB5CCNAME": tickets}, *AHEAD))
    named = r"Ticket expired. Check .* that KRB5CCNAME \(FILE:.*ann.tickets\) has a valid ticket"
    assert re.search(named, line), line


def test_a_wrong_clock_is_named(kerberos: KerberosBroker) -> None:
    environment = kerberos.environment(OWNER)
    strict = {**environment, "KRB5_CONFIG": str(kerberos.kdc.strict_config)}
    line = refused(status(strict, *AHEAD))
    assert re.search("Clock skew too great .* Check that the clocks of this machine, the", line)


@pytest.mark.parametrize("runner", [(), AHEAD], ids=["right clock", "follows the KDC's clock"])
def test_a_command_whose_broker_has_another_name_uses_kafka(
    kerberos: KerberosBroker, runner: tuple[str, ...]
) -> None:
    names = {"bootstrap_servers": f"localhost:{kerberos.port}"}
    environment = kerberos.environment(OWNER, **names, sasl_kerberos_domain_name="127.0.0.1")
    done = status(environment, *runner)
    assert re.search("there is no group here|GROUP", done.stderr + done.stdout), done.stderr


def test_a_load_is_refused(kerberos: KerberosBroker) -> None:
    done = run_program(
        *(*BINWRIGHT, "load", "--topics", "new"),
        timeout_s=DEADLINE_S,
        environment={**kerberos.environment(OWNER), "COLUMNS": "250"},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "a load cannot use GSSAPI" in done.stderr
