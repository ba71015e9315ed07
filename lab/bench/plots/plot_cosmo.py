#!/usr/bin/env python3
"""Plots the gas of examples/cosmo: a slice at each step in the file.

    mpiexec -n 2 build/examples/cosmo --grid 96 --start 0.1 --end 1 --steps 4 --over-time off \\
        --output sync --file cosmo.h5
    lab/bench/plots/plot_cosmo.py cosmo.h5 -o docs/cosmo.png

Each panel is the mean of --thickness planes in the middle of the box, on one logarithmic scale.
Needs h5py, matplotlib, and the filter trz (HDF5_PLUGIN_PATH, or the package tailrace).
"""

import argparse

import h5py
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.colors import LogNorm  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402


def slices(path, thickness):
    """Read (scale factor, plane) of each step."""
    found = []
    with h5py.File(path) as file:
        for name in sorted(name for name in file if name.startswith("step_")):
            field = file[name]["baryon_density"]
            first = (field.shape[0] - thickness) // 2
            found.append((float(file[name].attrs["time"]),
                          np.asarray(field[first:first + thickness]).mean(axis=0)))
    return found


def draw(steps, box, path):
    figure, panels = plt.subplots(1, len(steps), figsize=(2.75 * len(steps) + 0.8, 3.2),
                                  layout="constrained", squeeze=False, sharey=True)
    scale = LogNorm(0.2, 20)
    for axes, (growth, plane) in zip(panels[0], steps):
        # Within the file's bound, an empty cell may be below zero, which has no logarithm.
        image = axes.imshow(np.maximum(plane, 1e-3), norm=scale, cmap="inferno", origin="lower",
                            extent=(0, box, 0, box), interpolation="bilinear")
        axes.set_title(f"a = {growth:.2f}", fontsize=10)
        axes.set_xlabel("x, Mpc/h", fontsize=9)
        axes.set_xticks(np.linspace(0, box, 5))
        axes.set_yticks(np.linspace(0, box, 5))
        axes.tick_params(labelsize=8)
    panels[0][0].set_ylabel("y, Mpc/h", fontsize=9)
    bar = figure.colorbar(image, ax=panels[0], shrink=0.86, extend="both", aspect=18, pad=0.015)
    bar.set_label("gas density over the mean", fontsize=9)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.tick_params(labelsize=8)
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="of cosmo --over-time off")
    parser.add_argument("--box", type=float, default=20, help="its edge, Mpc/h, as cosmo was told")
    parser.add_argument("--thickness", type=int, default=4, help="planes of cells")
    parser.add_argument("-o", "--output", required=True, help="PNG or SVG")
    options = parser.parse_args()
    draw(slices(options.file, options.thickness), options.box, options.output)


if __name__ == "__main__":
    main()
