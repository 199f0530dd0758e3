"""Addresses of Spark Connect, and what of them may be shown."""

from pathlib import Path

import pytest

from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.spark_url import has_token, host_and_port, redacted_url, with_token

PRIVATE = "sc://spark:443/;use_ssl=true;token=s3cret"


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("sc://spark", ("spark", 15002)),
        ("sc://spark:443/;token=s3cret", ("spark", 443)),
        ("sc://", ("", 15002)),
    ],
)
def test_it_names_a_server(url: str, server: tuple[str, int]) -> None:
    assert host_and_port(url) == server


def test_a_token_is_not_shown() -> None:
    lake = LakeSettings(spark=PRIVATE)
    assert lake.spark == PRIVATE
    assert redacted_url(PRIVATE) == "sc://spark:443"
    assert "s3cret" not in repr(lake)


def test_an_error_about_the_address_does_not_show_the_token() -> None:
    with pytest.raises(ValueError, match=r"got 'http://spark'") as result:
        LakeSettings(spark="http://spark/;token=s3cret")
    assert "expected a Spark Connect address" in str(result.value)


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("sc://spark", "sc://spark/;token=a%2Fb"),
        ("sc://spark:443/;use_ssl=true;", "sc://spark:443/;use_ssl=true;token=a%2Fb"),
    ],
)
def test_a_file_s_token_is_added(url: str, whole: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a/b\n")
    assert with_token(url, file) == whole
    assert with_token(url, None) == url
    assert [has_token(each) for each in (url, whole)] == [False, True]


def test_the_next_session_uses_a_renewed_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    with_token("sc://spark", file)
    file.write_text("new")
    assert with_token("sc://spark", file) == "sc://spark/;token=new"


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    with pytest.raises(ValueError, match=r"token \(lake.token_file\) is empty"):
        with_token("sc://spark", tmp_path / "token")


def test_there_is_one_token(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leave one of them out"):
        LakeSettings(spark=PRIVATE, token_file=tmp_path / "token")


def test_an_authority_without_tls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="use_ssl=true"):
        LakeSettings(spark="sc://a/;use_ssl=true,sc://b", ca_file=tmp_path / "ca.pem")
