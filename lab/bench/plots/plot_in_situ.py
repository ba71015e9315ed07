#!/usr/bin/env python3
"""Plots the results of lab/bench/papers/in_situ.py, in the style of Jin et al. 2024.

    lab/bench/plots/plot_in_situ.py overheads in_situ.csv -o in_situ.png       figures 9 and 10
    lab/bench/plots/plot_in_situ.py sizes in_situ_sizes.csv -o sizes.png       figures 4 and 5

Overheads: a panel for each configuration, a group of bars for each limit; the axis is logarithmic,
and a whisker spans the single rounds. The dashed line is the writing time of a raw step over its
computation: a lower limit for synchronous output without compression. A bar below 0.1 % is shown as
a number only; whiskers are cut there. Needs matplotlib.
"""

import argparse
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

#: Colours after Okabe and Ito; pale: without compression.
STYLES = {"hdf5": ("#999999", "parallel HDF5, uncompressed"),
          "sync none": ("#e6c8a0", "Tailrace at once, uncompressed"),
          "async none": ("#a6cee3", "Tailrace beside it, uncompressed"),
          "sync": ("#d55e00", "Tailrace at once, trz"),
          "async": ("#0072b2", "Tailrace beside it by threads, trz"),
          "in_situ": ("#009e73", "Tailrace in idle time, trz")}
LEAST = 0.1  # percent
GREY = "#555555"


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def unique(values):
    return list(dict.fromkeys(values))


def limit_title(limit):
    return "storage without limit" if limit == "unlimited" else f"storage of {limit} MB/s a rank"


def draw_bars(axes, rows, outputs, limits):
    """Draw the bars of one configuration."""
    width = 0.85 / len(outputs)
    for row in rows:
        if row["output"] == "none":
            continue
        group, bar = limits.index(row["W_MB_per_s_and_rank"]), outputs.index(row["output"])
        x = group + (bar - (len(outputs) - 1) / 2) * width
        percent = 100 * float(row["overhead"])
        low, high = 100 * float(row["overhead_smallest"]), 100 * float(row["overhead_largest"])
        axes.bar(x, max(percent, LEAST), width * 0.9, color=STYLES[row["output"]][0])
        if high > LEAST:
            axes.plot([x, x], [max(low, LEAST), high], color=GREY, linewidth=0.8)
        axes.annotate(f"{percent:.2g}" if abs(percent) < 10 else f"{percent:.0f}",
                      (x, max(percent, high, LEAST)), ha="center", va="bottom", fontsize=7,
                      xytext=(0, 1), textcoords="offset points", zorder=5,
                      path_effects=[withStroke(linewidth=2, foreground="white")])
        raw = 100 * float(row["raw_write_s_per_step"]) / float(row["compute_s_per_step"])
        if row["output"] == outputs[0] and raw > 0:
            axes.plot([group - 0.45, group + 0.45], [raw, raw], "--", color="black", linewidth=0.8,
                      zorder=3)


def draw_overheads(rows, path):
    configurations = unique(row["configuration"] for row in rows)
    outputs = [name for name in STYLES if any(row["output"] == name for row in rows)]
    limits = unique(row["W_MB_per_s_and_rank"] for row in rows if row["output"] != "none")
    n_columns = min(len(configurations), 2)
    n_rows = -(-len(configurations) // n_columns)
    figure, panels = plt.subplots(n_rows, n_columns, figsize=(5.6 * n_columns, 3.1 * n_rows + 0.5),
                                  squeeze=False, sharey=True)
    for axes in panels.flat[len(configurations):]:
        axes.set_visible(False)
    for axes, name in zip(panels.flat, configurations):
        mine = [row for row in rows if row["configuration"] == name]
        draw_bars(axes, mine, outputs, limits)
        axes.set_yscale("log")
        axes.set_xticks(range(len(limits)), [limit_title(limit) for limit in limits])
        some = next(row for row in mine if row["output"] in ("in_situ", outputs[0]))
        with_ratio = [row for row in mine if row["output"] in ("sync", "async", "in_situ")]
        ratio = f", trz {float(with_ratio[0]['R']):.0f} times smaller" if with_ratio else ""
        axes.set_title(f"{name.partition('-')[0]} on {some['ranks']} "
                       f"rank{'s' if int(some['ranks']) > 1 else ''}: a step of "
                       f"{float(some['S_MB_per_step_and_rank']):.1f} MB and "
                       f"{1e3 * float(some['compute_s_per_step']):.0f} ms of computation{ratio}",
                       fontsize=8.5)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    highest = max(100 * float(row["overhead_largest"]) for row in rows)
    panels[0][0].set_ylim(LEAST, 2 * highest)  # shared by all panels
    for axes in panels[:, 0]:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda percent, _: f"{percent:g}"))
        axes.set_ylabel("time added to the run, %", fontsize=9)
    handles = [plt.Rectangle((0, 0), 1, 1, color=STYLES[name][0]) for name in outputs]
    handles.append(plt.Line2D([], [], color="black", linestyle="--", linewidth=0.8))
    figure.legend(handles, [STYLES[name][1] for name in outputs] + ["a raw step at this bandwidth"],
                  loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.09 if n_rows > 1 else 0.14, 1, 1))
    figure.savefig(path, dpi=150)


def draw_sizes(rows, path):
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    spread = max(float(row["spread"]) for row in rows)
    for axes, option, title in zip(panels, ("chunk", "buffer"), ("chunk", "write buffer")):
        axes.axhspan(1 - spread / 2, 1 + spread / 2, color="#dfe7e4", zorder=0,
                     label="spread of the rounds")
        mine = [row for row in rows if row["option"] == option]
        places = range(len(mine))
        relative = [float(row["steady_relative"]) for row in mine]
        axes.plot(places, relative, "o-", color=STYLES["in_situ"][0], label="an iteration (median)")
        axes.plot(places, [float(row["relative"]) for row in mine], "s--", color=GREY,
                  markersize=4, linewidth=1, label="whole run, with closing")
        axes.set_xticks(places, [f"{row['size'][:-3]} {row['size'][-3:]}" for row in mine])
        axes.set_xlabel(title)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].set_ylabel("time over that of the defaults")
    panels[0].set_ylim(1 - 0.6 * spread, 1 + 0.6 * spread)
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize=8, frameon=False, ncols=3,
                  loc="lower center")
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overheads", "sizes"])
    parser.add_argument("csv", nargs="+")
    parser.add_argument("-o", "--output", required=True, help="PNG or SVG")
    options = parser.parse_args()
    rows = [row for path in options.csv for row in read(path)]
    (draw_overheads if options.what == "overheads" else draw_sizes)(rows, options.output)


if __name__ == "__main__":
    main()
