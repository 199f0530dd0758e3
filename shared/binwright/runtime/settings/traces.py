"""Settings of traces."""

from binwright.protocol.section import Section, WebAddress


class TracesSettings(Section):
    """OpenTelemetry traces of plans and commits, with the extra `traces`.

    OpenTelemetry's own variables hold for all else, such as OTEL_EXPORTER_OTLP_HEADERS.
    """

    endpoint: WebAddress | None = None
    """Where OTLP over HTTP is taken, as `http://collector:4318`; unset: nothing is traced."""
