"""Events per second: the paper's workloads, a stand-in for the one not at hand, and files."""
