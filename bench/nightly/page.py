"""The series as a page of HTML that needs nothing else: a line for each ratio, chaos by night."""

from collections.abc import Iterator, Sequence
from html import escape

from bench.nightly.series import ChaosRun, Night

NIGHTS = 90  # that are drawn and listed, the newest
WIDTH, HEIGHT, MARGIN = 640, 80, 6
STYLE = (
    "body{font:14px sans-serif;max-width:60em;margin:2em auto}"
    "svg{width:100%;background:#f4f4f4}polyline{fill:none;stroke:#06c;stroke-width:2}"
    "circle{fill:#06c}td,th{text-align:left;padding:.2em .8em;vertical-align:top}.wrong{color:#b00}"
)


def page(nights: Sequence[Night]) -> str:
    """Return the page of these nights, oldest first."""
    shown = nights[-NIGHTS:]
    names = dict.fromkeys(name for night in shown for name in night.ratios)
    body = "\n".join(
        [
            "<h1>binwright by night</h1>",
            f"<p>{len(shown)} of {len(nights)} nights. Below 1, binwright needs less.</p>",
            *(_ratio(name, shown) for name in names),
            "<h2>Chaos</h2>",
            "<table><tr><th>night<th>version<th>runs<th>faults<th>longest recovery<th></tr>",
            *(_chaos(night) for night in reversed(shown)),
            "</table>",
        ]
    )
    head = f"<meta charset=utf-8><title>binwright by night</title><style>{STYLE}</style>"
    return f"<!doctype html>\n<html lang=en><head>{head}</head><body>\n{body}\n</body></html>\n"


def _ratio(name: str, nights: Sequence[Night]) -> str:
    values = [night.ratios.get(name) for night in nights]
    known = [value for value in values if value is not None]
    if not known:
        return f"<h2>{escape(name)}</h2><p>no value yet</p>"
    last = "none" if values[-1] is None else f"{values[-1]:.2f}"
    span = f"last night {last}; from {min(known):.2f} to {max(known):.2f}"
    return f"<h2>{escape(name)}</h2><p>{span}</p>{_drawn(values, max(known))}"


def _drawn(values: Sequence[float | None], most: float) -> str:
    """Return a picture of values from 0 to `most`; nights without one leave a gap."""
    step = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)
    scale = (HEIGHT - 2 * MARGIN) / (most or 1.0)
    shapes = []
    for line in _lines(values):
        points = [(MARGIN + step * n, HEIGHT - MARGIN - scale * value) for n, value in line]
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        shapes.append(f'<polyline points="{places}"/>')
        shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in points]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(shapes)}</svg>'


def _lines(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Yield the runs of values without a gap, each value with its place."""
    line: list[tuple[int, float]] = []
    for number, value in enumerate(values):
        if value is not None:
            line.append((number, value))
        elif line:
            yield line
            line = []
    if line:
        yield line


def _chaos(night: Night) -> str:
    longest = max((run.longest_s for run in night.chaos if run.longest_s is not None), default=None)
    wrong = [_wrong(run) for run in night.chaos if run.outcome != "clean"]
    cells = (
        night.date,
        night.version,
        str(len(night.chaos)),
        str(sum(run.faults for run in night.chaos)),
        "" if longest is None else f"{longest:.1f} s",
    )
    verdict = "<br>".join(map(escape, wrong)) or "clean"
    kind = ' class="wrong"' if wrong else ""
    return f"<tr>{''.join(f'<td>{escape(cell)}' for cell in cells)}<td{kind}>{verdict}</tr>"


def _wrong(run: ChaosRun) -> str:
    what = f": {'; '.join(run.wrong)}" if run.wrong else ""
    return f"seed {run.seed} {run.outcome}{what}"
