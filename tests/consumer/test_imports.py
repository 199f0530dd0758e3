"""A consumer that writes no table loads no Spark client: it must start fast and stay small."""

import subprocess
import sys

CODE = (
    "import sys, binwright.consumer.__main__, binwright.consumer.stage.files; print(*sys.modules)"
)


def test_without_a_table_to_write_neither_spark_nor_pandas_is_loaded() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in printed.stdout.split()}
    assert "pyarrow" in loaded
    assert not loaded & {"pyspark", "pandas", "grpc", "matplotlib", "typer"}
