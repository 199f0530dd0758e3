"""Names of tables in a catalog, by a template."""

import pytest
from pydantic import TypeAdapter, ValidationError

from binwright.tables.registration import CatalogName, catalog_name, check_catalog_names

TEMPLATES = TypeAdapter(CatalogName)


@pytest.mark.parametrize("text", ["", "sales.{table}", "main.sales-eu.x_{table}_v2", "a.b.orders"])
def test_a_template_has_two_parts_or_three(text: str) -> None:
    assert TEMPLATES.validate_python(text) == text


@pytest.mark.parametrize(
    "text",
    ["{table}", "a.b.c.{table}", "{table}.a", "a.{topic}", "a.`b`", "a. b", "a..b", "a.b'", "a."],
)
def test_other_templates_are_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="is no name as in"):
        TEMPLATES.validate_python(text)


def test_what_metastores_do_not_take_becomes_an_underscore() -> None:
    assert catalog_name("main.sales.{table}", "orders.eu-1") == "main.sales.orders_eu_1"
    assert catalog_name("", "orders") == ""


def test_each_table_needs_a_name_of_its_own() -> None:
    check_catalog_names({"a": "s.a", "b": "s.b", "c": "", "d": ""})
    for names in (
        {"a": "s.t", "b": "s.T"},
        {"a.b": "s.a_b", "a-b": "s.a_b"},
        {"a": "s.a", "x": "s.a__bad"},
    ):
        with pytest.raises(ValueError, match="would both have the name"):
            check_catalog_names(names)
