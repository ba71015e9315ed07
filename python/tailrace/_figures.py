"""Figures of tables and reports by matplotlib, which is imported only for a figure."""

from __future__ import annotations

import importlib.util
import io
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._geography import edges, gridded
from ._measures import Numbers
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
    figure, axes = pyplot.subplots(1, 3, figsize=(17, 4.2), layout="constrained")
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
    _legend_beside(axes[1])
    colours = pyplot.get_cmap(_COLOURS)(np.linspace(0.85, 0.1, max(len(table), 2)))
    for row, colour in zip(table, colours):
        axes[2].loglog(table.wave_numbers, row.power, color=colour, label=row.bound)
    axes[2].loglog(table.wave_numbers, table.power, "k--", label="original")
    _plain_ticks(axes[2])
    axes[2].set_xlabel("wave number, cycles per grid spacing")
    axes[2].set_ylabel("power")
    _legend_beside(axes[2])
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
    """Draw maps of original, decoded values and errors, a histogram of errors, and spectra, as an
    SVG; None: nothing to draw.

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
        heights = 3.9 * _height_of(drawn) + 1.5, 3.1
        figure = Figure(figsize=(13, sum(heights)), layout="constrained")
        FigureCanvasSVG(figure)
        parts: Any = figure.subfigures(2, 1, height_ratios=heights)
        upper, lower = parts
        bound = one.pointwise_bound or one.absolute_bound
        units = f", {printable(one.units)}" if one.units else ""
        unit = "" if one.pointwise_bound else units
        _draw_maps(upper, drawn, bound, f"{printable(one.path.rpartition('/')[2])}{units}",
                   f"|error|{unit}")
        histogram, spectra = lower.subplots(1, 2)
        _draw_histogram(histogram, drawn, bound, f"error{unit}")
        _draw_spectra(spectra, drawn)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None}, dpi=160)
    return stream.getvalue()


_BROKEN = "#c4161c"
_DECODED = "#3465a4"


def _draw_histogram(panel: Any, drawn: Drawn, bound: Optional[float], label: str) -> None:
    edges, counts = drawn.histogram.edges, drawn.histogram.counts
    beyond = np.zeros(counts.size, bool)
    if bound:
        slack = 1e-9 * bound
        beyond = (edges[:-1] < -bound - slack) | (edges[1:] > bound + slack)
        for at in (-bound, bound):
            panel.axvline(at, color="k", linestyle="--", linewidth=1)
    widths = np.diff(edges)
    colours = np.where(beyond, _BROKEN, _DECODED)
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


def _draw_maps(figure: Any, drawn: Drawn, bound: Optional[float], value_label: str,
               error_label: str) -> None:
    """Draw original, decoded values and errors of the slice."""
    panels = figure.subplots(1, 3)
    errors = drawn.error_map
    finite = errors[np.isfinite(errors)]
    top = bound or (float(finite.max()) if finite.size else 0.0) or 1.0
    for panel, title in zip(panels, ("original", "decoded", "size of errors")):
        panel.set_title(title)
    if errors.ndim == 1:
        _draw_lines(panels, drawn, bound, value_label, error_label)
        return
    from matplotlib import colormaps
    least, greatest = _limits(drawn.value_maps[0])
    colours = colormaps["viridis"].with_extremes(bad="#d0d0d0")
    shown: Any = None
    for panel, values in zip(panels, drawn.value_maps):
        shown = _draw_cells(panel, drawn, values, colours, least, greatest)
    beyond = [np.nanmin(drawn.value_maps[0]) < least, np.nanmax(drawn.value_maps[0]) > greatest
              ] if finite.size else [False, False]
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (bool(beyond[0]), bool(beyond[1])), "neither")
    bar = figure.colorbar(shown, ax=panels[:2], extend=extend, location="bottom", shrink=0.6,
                          aspect=40)
    bar.set_label(value_label, parse_math=False)
    colours = colormaps["magma"].with_extremes(bad="#d0d0d0", over=_BROKEN)
    shown = _draw_cells(panels[2], drawn, errors, colours, 0.0, top * (1 + 1e-9))
    too_great = bool(bound) and bool((errors > top * (1 + 1e-9)).any())
    bar = figure.colorbar(shown, ax=panels[2], extend="max" if too_great else "neither",
                          location="bottom", shrink=0.9, aspect=30)
    bar.set_label(error_label + (", up to the bound" if bound else ""), parse_math=False)


def _height_of(drawn: Drawn) -> float:
    """Return the height of a map, as a share of its width: that of the Earth, or of the array if
    neither is much longer."""
    if drawn.error_map.ndim == 1:
        return 0.5
    places = drawn.places
    if places is None:
        rows, columns = drawn.map_shape
        return rows / columns if 0.5 < rows / columns < 2 else 0.6
    known = places.latitude[np.isfinite(places.latitude)]
    wide = np.ptp(places.longitude[np.isfinite(places.longitude)]) or 1.0
    narrowed = float(np.cos(np.deg2rad(min(abs(float(known.mean())), 70.0))))
    return float(np.clip(np.ptp(known) / (min(wide, 360.0) * narrowed), 0.35, 1.2))


def _limits(values: Numbers) -> tuple[float, float]:
    """Return the ends of a colour scale that few values exceed."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    least, greatest = (float(one) for one in np.percentile(finite, [0.5, 99.5]))
    span = float(np.ptp(finite))
    if greatest - least > 0.5 * span:  # no outliers
        least, greatest = float(finite.min()), float(finite.max())
    return (least, greatest) if greatest > least else (least - 0.5, least + 0.5)


def _draw_cells(panel: Any, drawn: Drawn, cells: Numbers, colours: Any, least: float,
                greatest: float) -> Any:
    """Draw a map, on latitude and longitude if the data have them."""
    how: dict[str, Any] = {"cmap": colours, "vmin": least, "vmax": greatest}
    places = drawn.places
    if places is None:
        rows, columns = drawn.map_shape
        panel.set_ylabel(printable(drawn.map_dims[0]), parse_math=False)
        panel.set_xlabel(printable(drawn.map_dims[1]), parse_math=False)
        panel.set_box_aspect(_height_of(drawn))
        return panel.imshow(cells, aspect="auto", origin="upper", interpolation="nearest",
                            extent=(-0.5, columns - 0.5, rows - 0.5, -0.5), **how)
    panel.set_facecolor("#d0d0d0")
    if places.is_curvilinear:
        latitude, longitude, cells = gridded(places, cells)
    else:
        latitude = np.clip(edges(places.latitude), -90, 90)
        longitude = edges(places.longitude)
        cells = cells.T if places.transposed else cells
    shown = panel.pcolormesh(longitude, latitude, np.ma.masked_invalid(cells), rasterized=True,
                             **how)
    panel.set_box_aspect(_height_of(drawn))
    for axis, signs, n_ticks in ((panel.xaxis, "WE", 5), (panel.yaxis, "SN", 4)):
        _degrees(axis, signs, n_ticks)
    return shown


def _degrees(axis: Any, signs: str, n_ticks: int) -> None:
    """Label ticks 60W, 0, 60E."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def text(value: float, _: object) -> str:
        angle = (value + 180) % 360 - 180 if signs == "WE" else value
        angle = round(angle, 6)
        sign = "" if angle in (0, -180) else signs[0] if angle < 0 else signs[1]
        return f"{abs(angle):g}\N{DEGREE SIGN}{sign}"
    axis.set_major_locator(MaxNLocator(n_ticks, steps=[1, 1.5, 2, 3, 4.5, 5, 6, 9, 10]))
    axis.set_major_formatter(FuncFormatter(text))


def _draw_lines(panels: Any, drawn: Drawn, bound: Optional[float], value_label: str,
                error_label: str) -> None:
    length = drawn.map_shape[0] if drawn.map_shape else drawn.error_map.size
    at = np.arange(drawn.error_map.size) * (length / max(drawn.error_map.size, 1))
    for panel, values in zip(panels, (*drawn.value_maps, drawn.error_map)):
        panel.plot(at, values.reshape(-1), linewidth=0.8, color=_DECODED)
        panel.locator_params(axis="x", nbins=4)
        panel.set_xlabel(printable(drawn.map_dims[0] if drawn.map_dims else ""), parse_math=False)
        panel.set_ylabel(value_label, parse_math=False)
    panels[1].sharey(panels[0])
    panels[2].set_ylabel(error_label, parse_math=False)
    if bound:
        panels[2].axhline(bound, color="k", linestyle="--", linewidth=1)


def _draw_spectra(panel: Any, drawn: Drawn) -> None:
    panel.set_title("spectra")
    original, decoded, difference = drawn.powers
    lines = (("original", original, {"color": "k", "linestyle": "--", "zorder": 3}),
             ("decoded", decoded, {"color": _DECODED, "linewidth": 2.5, "alpha": 0.7}),
             ("difference", difference, {"color": "#e08020"}))
    for label, power, style in lines:
        if (power > 0).any():
            panel.plot(drawn.wave_numbers, np.where(power > 0, power, np.nan), label=label, **style)
    if panel.lines:
        panel.set_xscale("log")
        panel.set_yscale("log")
        _plain_ticks(panel)
        _legend_beside(panel)
    panel.set_xlabel("wave number, cycles per grid spacing")
    panel.set_ylabel("power")


def _legend_beside(panel: Any) -> None:
    """Draw the legend outside of the data."""
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _plain_ticks(panel: Any) -> None:
    """Label ticks 0.01, 0.02, 0.05, ... along a logarithmic axis, or 0.01, 0.1, ... if it has many
    decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    least, greatest = panel.get_xlim()
    subs = (1.0, 2.0, 5.0) if greatest < 1e3 * least else (1.0,)
    panel.xaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
