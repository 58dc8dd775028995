"""Draws charts as one SVG that reads well on light and on dark pages."""

from collections.abc import Sequence
from html import escape

from benchmarks.report import Chart

COLUMNS = 2
WIDTH, LABELS, VALUES = 460, 180, 60  # of a chart, of the names and of the figures beside bars
BAR, STEP, TITLE, GAP = 16, 24, 34, 26
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 14px; }
.value, .note { fill: #59636e; }
.other { fill: #afb8c1; }
.ours { fill: #0969da; }
.target { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .value, .note { fill: #9198a1; }
  .other { fill: #59636e; }
  .ours { fill: #4493f8; }
  .target { stroke: #f85149; }
}
"""


def drawn(charts: Sequence[Chart], described: str) -> str:
    """Return the picture; `described` is what it says to those who cannot see it."""
    heights = [0] * COLUMNS
    parts = []
    for chart in charts:
        column = heights.index(min(heights))
        parts.append(_chart(chart, GAP + column * (WIDTH + GAP), heights[column] + GAP))
        heights[column] += TITLE + len(chart.bars) * STEP + GAP
    width, height = COLUMNS * (WIDTH + GAP) + GAP, max(heights) + 2 * GAP
    note = _text(GAP, height - GAP / 2, "dashed: what ours must reach", "note")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">\n<title>{escape(described)}</title>\n'
        f"<style>{STYLE}</style>\n" + "\n".join([*parts, note]) + "\n</svg>\n"
    )


def _chart(chart: Chart, left: float, top: float) -> str:
    longest = max([*chart.bars.values(), chart.target or 0.0])
    scale = (WIDTH - LABELS - VALUES) / longest
    start = left + LABELS
    unit = f", {chart.unit}" if chart.unit else ""
    lines = [_text(left, top + 14, chart.title + unit, "title")]
    for row, (name, value) in enumerate(chart.bars.items()):
        y = top + TITLE + row * STEP
        kind = "ours" if name.startswith("ours") else "other"
        width = max(value * scale, 1)
        lines += [
            _text(start - 8, y + 13, name, "name", "end"),
            f'<rect class="{kind}" x="{start}" y="{y}" width="{width:.1f}" height="{BAR}"/>',
            _text(left + WIDTH, y + 13, _figure(value), "value", "end"),
        ]
    if chart.target is not None:
        x, bottom = start + chart.target * scale, top + TITLE + len(chart.bars) * STEP - 4
        lines.append(
            f'<line class="target" x1="{x:.1f}" x2="{x:.1f}" y1="{top + TITLE - 5:.1f}" '
            f'y2="{bottom:.1f}"/>'
        )
    return "\n".join(lines)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004 - three digits


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
