"""What a consumer that writes no table does not load: it is to be ready in a second, and small."""

import subprocess
import sys

SAY = "import sys, binwright.consumer.__main__, binwright.consumer.files; print(*sys.modules)"


def test_without_a_table_to_write_neither_spark_nor_pandas_is_loaded() -> None:
    told = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in told.stdout.split()}
    assert "pyarrow" in loaded
    assert not loaded & {"pyspark", "pandas", "grpc", "matplotlib", "typer"}
