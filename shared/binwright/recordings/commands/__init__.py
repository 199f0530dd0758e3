"""Commands about the metrics topic: top, record, replay."""
