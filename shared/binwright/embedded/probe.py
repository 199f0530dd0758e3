"""Run one query through a Spark Connect client: `probe.py URL`. Run as a file, by `spark.py`.

A process of its own: the client's imports cost 0.2 s and 100 MB, which the parent may never need.
"""

import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Ask for one row, and let the session go."""
    spark = SparkSession.builder.remote(sys.argv[1]).create()
    try:
        spark.sql("SELECT 1").collect()
    finally:
        spark.stop()


main()
