"""One broker and one Spark for all groups."""

from tests.integration.conftest import (  # noqa: F401 - fixtures
    background_loop,
    broker,
    spark_url,
)
