"""Figures of tables and reports by matplotlib, which is imported only for a figure."""

from __future__ import annotations

import importlib.util
import io
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._printable import printable

if TYPE_CHECKING:
    from ._report import Drawn, VariableReport
    from ._suggest import BoundTable

#: Colours of the curves drawn next to an original, from the loosest bound on.
_COLOURS = "plasma"


def _matplotlib(what: str) -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as failure:
        raise ImportError(f"{what} needs matplotlib, which is not installed: "
                          "pip install matplotlib") from failure
    return pyplot


def plot_bounds(table: BoundTable) -> Any:
    """Draw three Axes: ratio, changes, spectra."""
    pyplot = _matplotlib("plot()")
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 4.2), layout="constrained")
    at = np.arange(len(table))
    for panel in axes[:2]:
        panel.set_xticks(at, [row.bound for row in table], rotation=35, ha="right")
        panel.set_yscale("log")
        panel.grid(alpha=0.3)
    axes[0].plot(at, [row.ratio for row in table], "o-")
    axes[0].set_ylabel("ratio")
    changes = {"largest error / std": [row.max_error / table.std if table.std else 0.0
                                       for row in table],
               "mean / std": [abs(row.mean_shift) for row in table],
               "standard deviation": [abs(row.std_change) for row in table],
               "gradient, RMS": [row.gradient_error for row in table]}
    for marker, (label, values) in zip("os^d", changes.items()):
        # An exact value (0) has no place on a logarithmic scale.
        axes[1].plot(at, [value if value > 0 else np.nan for value in values], f"{marker}-",
                     label=label)
    axes[1].set_ylabel("change, as a share")
    axes[1].legend()
    colours = pyplot.get_cmap(_COLOURS)(np.linspace(0.85, 0.1, max(len(table), 2)))
    for row, colour in zip(table, colours):
        axes[2].loglog(table.wave_numbers, row.power, color=colour, label=row.bound)
    axes[2].loglog(table.wave_numbers, table.power, "k--", label="original")
    _plain_ticks(axes[2])
    axes[2].set_xlabel("wave number, cycles per grid spacing")
    axes[2].set_ylabel("power")
    axes[2].legend()
    axes[2].grid(alpha=0.3)
    figure.suptitle(printable(f"{table.name}: {table.codec}, {table.sample}"), parse_math=False)
    return axes


def can_draw() -> bool:
    """True if matplotlib is installed."""
    try:
        return importlib.util.find_spec("matplotlib") is not None
    except ValueError:  # hidden from this process
        return False


def draw_report(one: VariableReport) -> Optional[bytes]:
    """Draw histogram, error map and spectra of a variable as an SVG; None: nothing to draw.

    It avoids pyplot, so that a program's own figures and its backend are unaffected.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    drawn = one.drawn
    if drawn is None:
        return None
    # A fixed salt makes the bytes of an SVG reproducible.
    with rc_context({"svg.hashsalt": "tailrace", "font.size": 9}):
        figure = Figure(figsize=(13, 3.7), layout="constrained")
        FigureCanvasSVG(figure)
        histogram, errors, spectra = figure.subplots(1, 3)
        bound = one.pointwise_bound or one.absolute_bound
        unit = "" if one.pointwise_bound or not one.units else f", {printable(one.units)}"
        _draw_histogram(histogram, drawn, bound, f"error{unit}")
        _draw_map(figure, errors, drawn, bound, f"|error|{unit}")
        _draw_spectra(spectra, drawn)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


_BROKEN = "#c4161c"


def _draw_histogram(panel: Any, drawn: Drawn, bound: Optional[float], label: str) -> None:
    edges, counts = drawn.histogram.edges, drawn.histogram.counts
    beyond = np.zeros(counts.size, bool)
    if bound:
        slack = 1e-9 * bound
        beyond = (edges[:-1] < -bound - slack) | (edges[1:] > bound + slack)
        for at in (-bound, bound):
            panel.axvline(at, color="k", linestyle="--", linewidth=1)
    widths = np.diff(edges)
    colours = np.where(beyond, _BROKEN, "#3465a4")
    panel.bar(edges[:-1], counts, widths, align="edge", color=colours.tolist())
    some = counts[counts > 0]
    if some.size and some.max() > 30 * some.min():
        panel.set_yscale("log")
        panel.set_ylim(bottom=0.7)
    panel.locator_params(axis="x", nbins=5)
    panel.ticklabel_format(axis="x", scilimits=(-2, 4))
    panel.set_xlabel(label, parse_math=False)
    panel.set_ylabel("values")
    panel.set_title("errors")
    if drawn.histogram.n_lost:
        panel.set_title(f"errors; and {drawn.histogram.n_lost:,} lost (NaN or infinite)",
                        color=_BROKEN)


def _draw_map(figure: Any, panel: Any, drawn: Drawn, bound: Optional[float], label: str) -> None:
    from matplotlib import colormaps
    errors = drawn.error_map
    finite = errors[np.isfinite(errors)]
    top = bound or (float(finite.max()) if finite.size else 0.0) or 1.0
    panel.set_title("size of errors")
    if errors.ndim == 1:
        length = drawn.map_shape[0] if drawn.map_shape else errors.size
        at = np.arange(errors.size) * (length / max(errors.size, 1))
        panel.plot(at, errors, linewidth=0.8)
        if bound:
            panel.axhline(bound, color="k", linestyle="--", linewidth=1)
        panel.set_xlabel(printable(drawn.map_dims[0] if drawn.map_dims else ""), parse_math=False)
        panel.set_ylabel(label, parse_math=False)
        return
    colours = colormaps["viridis"].with_extremes(bad="#d0d0d0", over=_BROKEN)
    rows, columns = drawn.map_shape
    shown = panel.imshow(errors, cmap=colours, vmin=0, vmax=top * (1 + 1e-9), aspect="auto",
                         origin="upper", interpolation="nearest",
                         extent=(-0.5, columns - 0.5, rows - 0.5, -0.5))
    beyond = bool(bound) and bool((errors > top * (1 + 1e-9)).any())
    bar = figure.colorbar(shown, ax=panel, extend="max" if beyond else "neither")
    bar.set_label(label, parse_math=False)
    panel.set_ylabel(printable(drawn.map_dims[0]), parse_math=False)
    panel.set_xlabel(printable(drawn.map_dims[1]), parse_math=False)


def _draw_spectra(panel: Any, drawn: Drawn) -> None:
    panel.set_title("spectra")
    original, decoded, difference = drawn.powers
    lines = (("original", original, {"color": "k", "linestyle": "--"}),
             ("decoded", decoded, {"color": "#3465a4"}),
             ("difference", difference, {"color": "#e08020"}))
    for label, power, style in lines:
        if (power > 0).any():
            panel.plot(drawn.wave_numbers, np.where(power > 0, power, np.nan), label=label, **style)
    if panel.lines:
        panel.set_xscale("log")
        panel.set_yscale("log")
        _plain_ticks(panel)
        panel.legend()
    panel.set_xlabel("wave number, cycles per grid spacing")
    panel.set_ylabel("power")


def _plain_ticks(panel: Any) -> None:
    """Label ticks 0.01, 0.02, 0.05, ... along a logarithmic axis of few decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
