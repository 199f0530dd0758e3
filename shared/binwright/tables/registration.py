"""Names of tables in a catalog of Spark, by a template of the settings."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from binwright.protocol.names import BAD_SUFFIX
from binwright.tables.columns import folded

TABLE = "{table}"
_TEMPLATE = re.compile(r"(?:[A-Za-z0-9_-]+\.){1,2}(?:[A-Za-z0-9_-]|\{table\})+")
_ODD = re.compile(r"[^A-Za-z0-9_]")


def _is_template(text: str) -> str:
    if text and not _TEMPLATE.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name as in `schema.{TABLE}` and `catalog.schema.{TABLE}`: letters, "
            f"digits, _ and -, and {TABLE} in the last part alone"
        )
    return text


CatalogName = Annotated[str, Field(max_length=500), AfterValidator(_is_template)]
"""`schema.name` or `catalog.schema.name`, with `{table}` in its last part; empty: none."""


def catalog_name(template: str, table: str) -> str:
    """Return the name of a table; empty without a template.

    Metastores take letters, digits and `_`: `_` stands for any other character of the table's name.
    """
    return template.replace(TABLE, _ODD.sub("_", table))


def check_catalog_names(names: Mapping[str, str]) -> None:
    """Raise `ValueError` where two tables, or the bad records of one, have one name.

    Args:
        names: Table -> its name in the catalog, or an empty one; case does not count there.
    """
    owners: dict[str, str] = {}
    for table, name in sorted(names.items()):
        for own in (name, name + BAD_SUFFIX) if name else ():
            if (other := owners.setdefault(folded(own), table)) != table:
                raise ValueError(
                    f"register_as: tables {other} and {table} would both have the name {own}: put "
                    f"{TABLE} into it, or give one of them another"
                )
