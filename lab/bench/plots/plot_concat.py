#!/usr/bin/env python3
"""Plots the results of lab/bench/papers/concat.py.

    lab/bench/plots/plot_concat.py compare concat.csv -o concat.png
    lab/bench/plots/plot_concat.py scale concat_scaling.csv -o concat_scaling.png

compare: end-to-end time of each method on each number of ranks; a whisker spans the rounds, the
number is the median. scale: time over files and over datasets, on logarithmic axes, with the line
of linear cost through the largest point; a last panel compares the kernel's count of memory with
the cap. Needs matplotlib.
"""

import argparse
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

#: Colours after Okabe and Ito.
STYLES = {"baseline": ("#999999", "collective HDF5, dataset by dataset"),
          "tailrace": ("#0072b2", "tailrace concat, one thread a rank"),
          "tailrace threads": ("#009e73", "tailrace concat, all cores")}
GREY = "#555555"


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tidy(axes):
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_compare(rows, path):
    ranks = list(dict.fromkeys(row["ranks"] for row in rows))
    methods = [name for name in STYLES if any(row["method"] == name for row in rows)]
    width = 0.8 / len(methods)
    figure, axes = plt.subplots(figsize=(7, 3.6))
    for row in rows:
        x = ranks.index(row["ranks"]) + (methods.index(row["method"]) - (len(methods) - 1) / 2) \
            * width
        low, median, high = (float(row[key]) for key in ("smallest_s", "total_s", "largest_s"))
        axes.bar(x, median, 0.9 * width, color=STYLES[row["method"]][0])
        axes.plot([x, x], [low, high], color=GREY, linewidth=0.8)
        label = f"{median:.1f} s"
        if row["method"] != "baseline":
            label += f"\n{float(row['times_faster']):.1f} x faster"
        axes.annotate(label, (x, high), ha="center", va="bottom", fontsize=7, xytext=(0, 2),
                      textcoords="offset points")
    some = rows[0]
    axes.set_title(f"one file of {some['files']} with {some['datasets']} datasets each, "
                   f"{float(some['raw_bytes']) / 1e6:.0f} MB of values; medians of "
                   f"{some['rounds']} runs",
                   fontsize=9)
    axes.set_xticks(range(len(ranks)), [f"{n} rank{'s' if n != '1' else ''}" for n in ranks])
    axes.set_ylabel("s, first open to last sync")
    axes.set_ylim(0, 1.15 * max(float(row["largest_s"]) for row in rows))
    tidy(axes)
    handles = [plt.Rectangle((0, 0), 1, 1, color=STYLES[name][0]) for name in methods]
    axes.legend(handles, [STYLES[name][1] for name in methods], fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def draw_scale(rows, path):
    parts = [name for name in ("files", "datasets") if any(row["over"] == name for row in rows)]
    figure, panels = plt.subplots(1, len(parts) + 1, figsize=(3.8 * (len(parts) + 1), 3.3))
    memory = panels[-1]
    for axes, name, colour in zip(panels, parts, ("#0072b2", "#d55e00")):
        mine = [row for row in rows if row["over"] == name]
        counts = [int(row[name]) for row in mine]
        times = [float(row["total_s"]) for row in mine]
        spans = [[t - float(row["smallest_s"]) for t, row in zip(times, mine)],
                 [float(row["largest_s"]) - t for t, row in zip(times, mine)]]
        axes.errorbar(counts, times, spans, fmt="o-", color=colour, capsize=2)
        axes.plot(counts, [times[-1] * n / counts[-1] for n in counts], "--", color=GREY,
                  linewidth=0.8, label="linear")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(counts, counts)
        axes.xaxis.set_minor_locator(NullLocator())
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
        axes.tick_params(axis="y", which="both", labelsize=8)
        other = "datasets" if name == "files" else "files"
        axes.set_xlabel(f"{name} ({mine[0][other]} {other})")
        axes.legend(fontsize=8, frameon=False)
        axes.set_ylabel("s, first open to last sync")
        tidy(axes)
        memory.plot([n / counts[0] for n in counts],
                    [float(row["peak_rss_bytes"]) / 2**20 for row in mine], "o-",
                    color=colour, label=f"more {name}")
    cap = float(rows[0]["memory_cap_bytes"]) / 2**20
    memory.axhline(cap, color="black", linestyle="--", linewidth=0.8, label="--memory, the cap")
    memory.set_xscale("log")
    sizes = [int(row[parts[0]]) / int(rows[0][parts[0]]) for row in rows if row["over"] == parts[0]]
    memory.set_xticks(sizes, [f"{size:g} x" for size in sizes])
    memory.xaxis.set_minor_locator(NullLocator())
    memory.set_xlabel("size of the set, of the smallest")
    memory.set_ylabel("peak memory of a rank, MiB")
    memory.set_ylim(0)
    memory.legend(fontsize=8, frameon=False)
    tidy(memory)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compare", "scale"])
    parser.add_argument("csv")
    parser.add_argument("-o", "--output", required=True, help="PNG or SVG")
    options = parser.parse_args()
    (draw_compare if options.what == "compare" else draw_scale)(read(options.csv), options.output)


if __name__ == "__main__":
    main()
