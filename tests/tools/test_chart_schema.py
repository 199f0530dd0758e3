"""The schema of the Helm chart's values is the settings' own."""

from tools import chart_schema


def test_the_schema_is_that_of_the_settings() -> None:
    assert chart_schema.FILE.read_text() == chart_schema.text(), "python -m tools.chart_schema"
