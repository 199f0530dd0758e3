"""What every process needs: settings, logs, signals and exit codes, health, metrics, back-off."""
