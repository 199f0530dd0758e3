"""Requests that aiokafka lacks, in bytes, compared with Kafka's protocol documentation."""

from binwright.balancer.admin.requests import ElectLeaders, IncrementalAlterConfigs

TEXT_A, TEXT_N, TEXT_V = "000161", "00016e", "000176"


def test_a_value_is_set() -> None:
    request = IncrementalAlterConfigs({(2, "a"): {"n": "v"}}).prepare({44: (0, 1)})
    assert request.encode().hex() == (
        "00000001" + "02" + TEXT_A + "00000001" + TEXT_N + "00" + TEXT_V + "00"
    )


def test_a_value_is_removed() -> None:
    request = IncrementalAlterConfigs({(4, ""): {"n": None}}).prepare({44: (0, 1)})
    assert request.encode().hex() == (
        "00000001" + "04" + "0000" + "00000001" + TEXT_N + "01" + "ffff" + "00"
    )


def test_first_replicas_are_elected() -> None:
    request = ElectLeaders({"a": [0, 7]}, 5).prepare({43: (0, 2)})
    assert request.encode().hex() == (
        "00" + "00000001" + TEXT_A + "00000002" + "00000000" + "00000007" + "00000005"
    )
