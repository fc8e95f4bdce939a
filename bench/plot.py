"""The figures of a run, as SVG written by hand: no dependency to pin, and readable on light and dark pages."""

from html import escape
from math import log

import variants
from results import setting_name, settings

WIDTH, MARGIN, LABELS, GAP = 920, 24, 168, 44
ROW, BAR, HEAD, PANEL_HEAD, FOOT = 25, 15, 62, 46, 56
PANEL = (WIDTH - 2 * MARGIN - LABELS - GAP) // 2
# What stands at the end of the longest bar needs room within the panel.
FIGURES = 56
# Of latencies, two figures stand beside the panel.
TWO_FIGURES = 104

# Baselines are grey; what is compared with them has the colour. Shares of a bar get lighter from left to right.
STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 12.5px; fill: #24292f }
.page { fill: #ffffff } .title { font-size: 17px; font-weight: 600 } .panel { font-weight: 600 }
.note, .tick { fill: #656d76 } .tick { font-size: 11px } .right { text-anchor: end } .middle { text-anchor: middle }
.rule { stroke: #d8dee4; stroke-width: 1 }
.base { fill: #9aa4af } .ours { fill: #0b7a75 } .companion { fill: #e0a030 } .store { fill: #c8553d }
.span { stroke-width: 3; stroke-linecap: round; opacity: 0.45 } .span.base { stroke: #9aa4af }
.span.ours { stroke: #0b7a75 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .page { fill: #0d1117 } .note, .tick { fill: #8d96a0 } .rule { stroke: #30363d }
  .base { fill: #6e7681 } .ours { fill: #2fb5ad } .companion { fill: #e3b341 } .store { fill: #e5735c }
  .span.base { stroke: #6e7681 } .span.ours { stroke: #2fb5ad }
}
"""


class Figure:
    """Four panels, one for each setting, with a row for each variant; one scale for all of them."""

    def __init__(self, title, note):
        self.parts = []
        rows = len(variants.COMPARED) * ROW
        self.height = HEAD + 2 * (PANEL_HEAD + rows) + FOOT
        self.text(MARGIN, 34, title, "title")
        self.text(MARGIN, 54, note, "note")

    def text(self, x, y, words, kind=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>')

    def bar(self, x, y, width, kind):
        self.parts.append(f'<rect x="{x:.1f}" y="{y - BAR / 2}" width="{max(width, 1):.1f}" height="{BAR}" rx="2" '
                          f'class="{kind}"/>')

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}" class="{kind}"/>')

    def dot(self, x, y, radius, kind):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="{radius}" class="{kind}"/>')

    def rows(self):
        """For each panel and variant, where its row begins and the middle of its height."""
        for index, (route, keys) in enumerate(settings()):
            left = MARGIN + LABELS + index % 2 * (PANEL + GAP)
            top = HEAD + index // 2 * (PANEL_HEAD + len(variants.COMPARED) * ROW) + PANEL_HEAD
            self.text(left, top - 8, setting_name(route, keys), "panel")
            self.line(left, top, left, top + len(variants.COMPARED) * ROW, "rule")
            for number, variant in enumerate(variants.COMPARED):
                y = top + number * ROW + ROW / 2
                if index % 2 == 0:
                    self.text(left - 10, y + 4.5, variant.name, "right")
                yield route, keys, variant, left, y

    def legend(self, entries):
        x, y = MARGIN + LABELS, self.height - 16
        for kind, words in entries:
            if kind:
                self.bar(x, y - 4.5, 14, kind)
            self.text(x + (20 if kind else 0), y, words, "note")
            x += 40 + 7 * len(words)

    def svg(self):
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
                f'height="{self.height}" role="img">\n<style>{STYLE}</style>\n'
                f'<rect class="page" width="{WIDTH}" height="{self.height}" rx="6"/>\n{body}\n</svg>\n')


def kind_of(variant):
    return "ours" if variant.field else "base"


def throughput(results, where):
    figure = Figure("Throughput of one Envoy worker", "Requests a second in a closed loop; in grey the ratio "
                    f"to native local_ratelimit. {where}")
    most = max(results.median("per_second", *setting, variant.slug)
               for setting in settings() for variant in variants.COMPARED)
    for route, keys, variant, left, y in figure.rows():
        value = results.median("per_second", route, keys, variant.slug)
        width = value / most * (PANEL - FIGURES - 34)
        figure.bar(left, y, width, kind_of(variant))
        share = results.ratio("per_second", route, keys, variant.slug, "native")
        figure.text(left + width + 7, y + 4.5, f"{value:,.0f}")
        figure.text(left + PANEL, y + 4.5, f"{share:.2f}", "note right")
    return figure.svg()


def cpu(results, where):
    figure = Figure("CPU time a request", f"Microseconds in a closed loop, by process. {where}")
    most = max(sum(results.cpu(*setting, variant.slug).values())
               for setting in settings() for variant in variants.COMPARED)
    for route, keys, variant, left, y in figure.rows():
        x, parts = left, results.cpu(route, keys, variant.slug)
        for name, value in parts.items():
            width = value / most * (PANEL - FIGURES)
            figure.bar(x, y, width, kind_of(variant) if name == "envoy" else name)
            x += width
        figure.text(x + 7, y + 4.5, f"{sum(parts.values()):.1f}")
    figure.legend([("base", "Envoy"), ("ours", "Envoy with Tidegate"), ("companion", "companion"), ("store", "store")])
    return figure.svg()


def latency(results, where, rate):
    figure = Figure("Latency", f"Milliseconds at {rate:,} requests a second, from the moment each was meant for; "
                    f"logarithmic. {where}")
    every = [results.median(f"p{percent}_us", *setting, variant.slug) / 1000
             for setting in settings() for variant in variants.COMPARED for percent in (50, 99)]
    ticks = [mantissa * 10 ** power for power in range(-3, 5) for mantissa in (1, 2, 5)]
    low = max([tick for tick in ticks if tick <= min(every)], default=ticks[0])
    high = min([tick for tick in ticks if tick >= max(every)], default=ticks[-1])
    shown = [tick for tick in ticks if low <= tick <= high]
    # Over a wide span only the powers of ten find room.
    if len(shown) > 7:
        shown = [tick for tick in shown if f"{tick:g}".strip("0.") == "1"]

    def place(left, value):
        return left + log(value / low) / log(high / low) * (PANEL - TWO_FIGURES)

    for number, (route, keys, variant, left, y) in enumerate(figure.rows()):
        if number % len(variants.COMPARED) == 0:
            bottom = y - ROW / 2 + len(variants.COMPARED) * ROW
            for tick in shown:
                figure.line(place(left, tick), y - ROW / 2, place(left, tick), bottom, "rule")
                figure.text(place(left, tick), bottom + 12, f"{tick:g}", "tick middle")
        at = {percent: results.median(f"p{percent}_us", route, keys, variant.slug) / 1000 for percent in (50, 95, 99)}
        kind = kind_of(variant)
        figure.line(place(left, at[50]), y, place(left, at[99]), y, f"span {kind}")
        for percent, radius in ((99, 3), (95, 3.8), (50, 5)):
            figure.dot(place(left, at[percent]), y, radius, kind)
        figure.text(left + PANEL, y + 4.5, f"{at[50]:.2f} · {at[99]:.2f}", "note right")
    figure.legend([("", "large dot p50, then p95, p99; figures: p50 · p99")])
    return figure.svg()
