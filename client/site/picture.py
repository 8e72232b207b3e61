"""Draws what goes into an operation and what comes out of it, as SVG in the colours of the page around it."""

import html
import math

WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM, GAP = 720, 150, 64, 12, 22, 22, 14


def ticks(low, high, most=4):
    """Round numbers between the two."""
    rough = (high - low) / most
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value):
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}")


class Panel:
    """A plot of some numbers, `top` below the picture's upper edge. Two-dimensional ones lie one after the other."""

    def __init__(self, values, top, kind, label, css):
        self.values, self.top, self.kind, self.label, self.css = values, top, kind, label, css
        low, high = min(values), max(values)
        if kind == "bars" or low == high:
            low, high = min(low, 0), max(high, 0)
        margin = 0.06 * (high - low or 1)
        self.low, self.high = low - margin, high + margin
        self.slot = (WIDTH - LEFT - RIGHT) / len(values)

    def x(self, i):
        return LEFT + self.slot * (i + 0.5)

    def y(self, value):
        return self.top + TOP + PANEL * (self.high - value) / (self.high - self.low)

    def grid(self):
        for value in ticks(self.low, self.high):
            y = self.y(value)
            yield f'<line class="{"zero" if value == 0 else "grid"}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>'
        for i in ticks(0, len(self.values) - 1, 8):
            if i == int(i):
                yield f'<text x="{self.x(i):.1f}" y="{self.top + TOP + PANEL + 16:.1f}" text-anchor="middle">{number(i)}</text>'

    def marks(self):
        if self.kind == "bars":
            zero, width = self.y(0), max(self.slot * 0.7, 1)
            for i, value in enumerate(self.values):
                y = self.y(value)
                yield (f'<rect class="{self.css}" x="{self.x(i) - width / 2:.1f}" y="{min(y, zero):.1f}" '
                       f'width="{width:.1f}" height="{abs(y - zero):.1f}"/>')
            return
        points = " ".join(f"{self.x(i):.1f},{self.y(value):.1f}" for i, value in enumerate(self.values))
        yield f'<polyline class="{self.css}" points="{points}"/>'

    def draw(self):
        yield f'<text class="label" x="{LEFT}" y="{self.top + 14}">{html.escape(self.label)}</text>'
        yield from self.grid()
        yield from self.marks()


def count_of(shape):
    return f"{shape[0]} rows of {shape[1]} samples" if len(shape) == 2 else f"{shape[0]} samples"


def draw(example, shape, values):
    """The picture of an example, whose output has this shape and these numbers."""
    height = 2 * (TOP + PANEL + BOTTOM) + GAP
    out = f"{shape[0]} numbers" if example.operation in ("reduce", "dot") else count_of(shape)
    before = Panel(example.input.values, 0, example.input_kind, f"x: {count_of(example.input.shape)}", "before")
    after = Panel(values, TOP + PANEL + BOTTOM + GAP, example.kind, f"y: {out}", "after")
    alternative = html.escape(example.see, quote=True)
    return "\n".join([f'<svg class="operation" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{alternative}">',
                      *before.draw(), *after.draw(), "</svg>"])
