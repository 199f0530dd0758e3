"""Java for the embedded servers: the installation, its options, jars and class data."""
