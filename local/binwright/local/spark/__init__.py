"""An embedded Spark: a Spark Connect server with Delta, alone or on a standalone cluster."""
