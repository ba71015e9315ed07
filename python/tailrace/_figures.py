"""Drawings of tables and reports by matplotlib, which is imported only when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._suggest import BoundTable

#: What is drawn beside an original, from the loosest bound on.
_COLOURS = "plasma"


def _matplotlib(what: str) -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as failure:
        raise ImportError(f"{what} is drawn by matplotlib, which is not installed: "
                          "pip install matplotlib") from failure
    return pyplot


def plot_bounds(table: BoundTable) -> Any:
    """Three Axes: ratio, changes, spectra."""
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
        # Exactly kept has no place on a logarithmic scale.
        axes[1].plot(at, [value if value > 0 else np.nan for value in values], f"{marker}-",
                     label=label)
    axes[1].set_ylabel("change, as a share")
    axes[1].legend()
    colours = pyplot.get_cmap(_COLOURS)(np.linspace(0.85, 0.1, max(len(table), 2)))
    for row, colour in zip(table, colours):
        axes[2].loglog(table.wave_numbers, row.power, color=colour, label=row.bound)
    axes[2].loglog(table.wave_numbers, table.power, "k--", label="original")
    axes[2].set_xlabel("wave number, cycles per grid spacing")
    axes[2].set_ylabel("power")
    axes[2].legend()
    axes[2].grid(alpha=0.3)
    figure.suptitle(f"{table.name}: {table.codec}, {table.sample}", parse_math=False)
    return axes
