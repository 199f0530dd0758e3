"""What every process needs: settings, logs, signals and exit codes, health, metrics, back-off.

May import the core; knows no client of Kafka, Spark or Kubernetes.
"""
