"""Two versions side by side on one group under load: 0 records lost, 0 doubled."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.deploy.upgrade.group import CONSUMERS, SLOTS, RollingGroup, rolling_group, until
from tests.deploy.upgrade.versions import (
    BEFORE_COMMANDS,
    NotInstalled,
    Version,
    former_ref,
    install,
    unpack,
    unpack_present,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="session")
def present(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """This checkout, as it is."""
    return install(unpack_present(tmp_path_factory.mktemp("present") / "tree"), "present")


@pytest.fixture(scope="session")
def later(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """This checkout, with another form of stamps, as a version that is not yet may have it."""

    def change(tree: Path) -> None:
        stamp = tree / "shared/binwright/tables/stamp.py"
        text = stamp.read_text()
        assert "_OLDER, _NEWEST = " in text
        stamp.write_text(text.replace('"binwright-stamp/", 3, 4', '"binwright-stamp/", 13, 14'))

    return install(unpack_present(tmp_path_factory.mktemp("later") / "tree", change), "later")


@pytest.fixture(scope="session")
def former_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Version]:
    """Installs the version of a commit."""

    def version(ref: str) -> Version:
        return install(unpack(ref, tmp_path_factory.mktemp("former") / "tree"), "former")

    return version


async def check_once(group: RollingGroup) -> None:
    """Fail unless each record is in the table once; print how long nothing landed at most."""
    result = await group.audit()
    assert result.clean, result.faults()
    assert result.rows == group.rows() > 0
    pause_s = group.longest_pause_s()
    sys.stdout.write(f"{result.rows} rows, {pause_s:.1f} s between commits at most\n")


async def test_a_group_is_rolled_to_this_version_and_back_and_each_record_lands_once(
    present: Version,
    former_of: Callable[[str], Version],
    tmp_path: Path,
    broker: str,
    spark_url: str,
) -> None:
    former = former_of(former_ref())
    async with rolling_group("rolled", tmp_path, broker, spark_url) as group:
        await group.start(former)
        await group.roll(present)
        assert await group.versions() == dict.fromkeys(range(SLOTS), present.name)
        await group.roll(former)
        assert await group.versions() == dict.fromkeys(range(SLOTS), former.name)
        await check_once(group)


async def test_a_table_of_columns_lands_on_while_its_group_is_rolled(
    present: Version,
    former_of: Callable[[str], Version],
    tmp_path: Path,
    broker: str,
    spark_url: str,
) -> None:
    """A former writer does not read rows that are laid out as the table's."""
    columns = "id BIGINT, customer STRING, amount DOUBLE, note STRING"
    former = former_of(former_ref())
    async with rolling_group("columns", tmp_path, broker, spark_url, columns) as group:
        await group.start(former)
        await group.roll(present)
        table = await group.table()
        assert table is not None
        assert (table.report.bad, table.report.appended) == (0, "")
        await check_once(group)


async def test_a_group_is_rolled_across_a_change_of_the_protocol_and_each_record_lands_once(
    present: Version,
    former_of: Callable[[str], Version],
    tmp_path: Path,
    broker: str,
    spark_url: str,
) -> None:
    """In the order of the documentation; nobody waits for what the two do not say to each other."""
    try:
        former = former_of(BEFORE_COMMANDS)
    except NotInstalled as exc:
        pytest.skip(str(exc))
    async with rolling_group("crossed", tmp_path, broker, spark_url) as group:
        await group.start(former)
        await group.roll(present)
        assert await group.versions() == dict.fromkeys(range(SLOTS), present.name)
        await group.roll(former)
        await check_once(group)


async def test_a_table_of_a_later_version_waits_for_it_and_loses_nothing(
    present: Version, later: Version, tmp_path: Path, broker: str, spark_url: str
) -> None:
    async with rolling_group("later", tmp_path, broker, spark_url) as group:
        await group.start(later)
        await group.stop(CONSUMERS)
        before = group.rows()
        for name in CONSUMERS:
            await group.services[name].replace(present)

        async def refused() -> bool:
            table = await group.table()
            return table is not None and table.state == "refused"

        await until("the table is refused", refused)
        table = await group.table()
        assert table is not None
        assert "commits of a later version of binwright (binwright-stamp/13)" in table.report.fault
        assert group.rows() == before
        for name in CONSUMERS:  # the table lands once its writer is one of them
            await group.services[name].replace(later)
        await group.lands()
        assert group.rows() > before
        await check_once(group)
