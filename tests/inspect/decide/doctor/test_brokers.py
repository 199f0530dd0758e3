"""What is wrong with brokers is named, and what still works is no fault."""

import pytest

from binwright.inspect.decide.doctor.brokers import (
    RENEWED_S,
    SIZES,
    BrokerReply,
    RequestKind,
    advertised,
    apis,
    certificate,
    log_directories,
    readable_password,
    servers,
)
from binwright.inspect.decide.doctor.findings import Finding, has_fault, listed

GENERAL = "that a broker listens"
AWAY = BrokerReply("b:9092", "connection refused")


def test_a_server_that_cannot_be_used_is_a_fault_with_what_to_check() -> None:
    password = BrokerReply("c:9092", "wrong password", "the password")
    (away, refused) = servers([AWAY, password], GENERAL)
    assert away == Finding("kafka b:9092", "fault", "connection refused", f"check {GENERAL}")
    assert refused.do == "check the password"


def test_beside_a_server_that_works_it_is_a_warning() -> None:
    found = [*servers([BrokerReply("a:9092"), AWAY], GENERAL)]
    assert [each.status for each in found] == ["ok", "warning"]
    assert not has_fault(found)


def test_a_broker_that_cannot_be_reached_where_it_advertises_itself_is_a_fault() -> None:
    (found,) = advertised({1: BrokerReply("a:9092"), 2: AWAY})
    assert (found.check, found.status) == ("broker 2", "fault")
    assert "advertises b:9092" in found.what
    assert "advertised.listeners" in found.do
    (named,) = advertised({1: BrokerReply("a:9092", "refused", "the certificate")})
    assert named.do == "check the certificate"


def test_brokers_that_are_all_reached_are_one_line() -> None:
    (found,) = advertised({1: BrokerReply("a:9092"), 2: BrokerReply("b:9092")})
    assert (found.status, found.what) == ("ok", "2 of 2 reached as they advertise themselves")
    assert list(advertised({})) == []


@pytest.mark.parametrize(
    ("valid_s", "status", "what"),
    [
        (-1.0, "fault", "has expired"),
        (0.0, "fault", "cannot be read"),
        (86_400.0, "warning", "valid for 24 hours only"),
        (RENEWED_S, "ok", "valid for 72 hours"),
    ],
)
def test_a_certificate_is_to_be_renewed_three_days_before_it_expires(
    valid_s: float, status: str, what: str
) -> None:
    found = certificate("/etc/client.pem", valid_s)
    assert (found.check, found.status, found.what) == ("certificate /etc/client.pem", status, what)
    assert ("renew" in found.do) == (status != "ok")


FETCH, LOG_DIRS = RequestKind("Fetch", 1, (4, 11)), RequestKind(SIZES, 35, (1, 2))


def test_a_broker_without_a_version_of_a_request_is_too_old_or_too_new() -> None:
    (old,) = apis({1: (0, 3), 35: (0, 1)}, [FETCH, LOG_DIRS])
    (new,) = apis({1: (12, 17), 35: (0, 1)}, [FETCH, LOG_DIRS])
    assert old.status == new.status == "fault"
    assert old.what == "Fetch: the broker has versions 0 to 3, binwright 4, 11"
    (none,) = apis({35: (0, 1)}, [FETCH, LOG_DIRS])
    assert none.what.startswith("Fetch: the broker has none")


def test_sizes_of_logs_are_not_needed() -> None:
    (found,) = apis({1: (4, 4)}, [FETCH, LOG_DIRS])
    assert found.status == "warning"
    (fine,) = apis({1: (11, 12), 35: (2, 4)}, [FETCH, LOG_DIRS])
    assert (fine.status, fine.what[:32]) == ("ok", "supports all 2 kinds of request;")


def test_of_many_names_the_first_are_listed() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([*"abcdefg"]) == "a, b, c, d, e and 2 more"


def test_a_password_that_all_may_read_is_a_warning() -> None:
    found = readable_password("binwright.toml")
    assert (found.check, found.status) == ("password in binwright.toml", "warning")
    assert "sasl_password_file" in found.do


def test_a_dead_log_directory_is_a_fault_of_its_broker() -> None:
    (found,) = log_directories({2: ("/data/b",)})
    assert (found.check, found.status, "/data/b" in found.what) == ("broker 2", "fault", True)
