"""Run one query through a Spark Connect client: `spark_probe.py URL`. Run as a file, by `spark.py`.

The client takes the token from its environment.

A process of its own: the client's imports cost 0.2 s and 100 MB, which the parent may never need.
It starts together with the server and is ended by whoever has lost patience.
"""

import socket
import sys
import time
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

POLL_S = 0.02


def main() -> None:
    """Ask for one row as soon as somebody listens, and let the session go."""
    address = urlsplit(sys.argv[1])
    # The client's own retries wait longer and longer.
    while not _listening(str(address.hostname), address.port or 0):
        time.sleep(POLL_S)
    spark = SparkSession.builder.remote(sys.argv[1]).create()
    try:
        spark.sql("SELECT 1").collect()
    finally:
        spark.stop()


def _listening(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


main()
