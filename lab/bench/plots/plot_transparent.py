#!/usr/bin/env python3
"""Plots the results of lab/bench/papers/transparent.py.

    plot_transparent.py write write.csv -o write.png      figure 8 of Bicer et al. 2014
    lab/bench/plots/plot_transparent.py chunks chunks.csv -o chunks.png   figure 7, over chunk sizes
    lab/bench/plots/plot_transparent.py read read.csv -o read.png         figures 12 and 13

One panel for each storage limit (read: and each application). Bars are medians, whiskers span the
rounds. The number over a bar is its speed-up over uncompressed data through PnetCDF. Needs
matplotlib.
"""

import argparse
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

GREY = "#555555"
#: Colours after Okabe and Ito: one for each codec or layout; uncompressed ones are grey. Methods of
#: Tailrace's own reader have their codec's colour, hatched.
COLOURS = {"P_original": "#8c8c8c", "P_independent": "#bdbdbd", "H_original": "#636363",
           "P_sparse": "#e69f00", "P_dense": "#cc79a7", "P_hybrid": "#56b4e9",
           "P_claimed": "#0072b2", "H_filtered": "#d55e00",
           "trz": "#0072b2", "xor": "#e69f00", "zstd": "#cc79a7", "trz_0.01": "#009e73"}
UNCOMPRESSED = ("P_original", "P_independent", "H_original")
NAMES = {"P_original": "PnetCDF, collective", "P_independent": "PnetCDF, independent",
         "H_original": "parallel HDF5, uncompressed",
         "H_filtered": "parallel HDF5, trz as its filter"}
CODECS = {"trz": "trz, without loss", "xor": "xor, without loss", "zstd": "zstd, without loss",
          "trz_0.01": "trz, within 0.01 K"}


def label_of(method):
    """Name of a method in the legend."""
    if method in NAMES:
        return NAMES[method]
    way, _, rest = method.partition("_")
    if rest in CODECS:
        return ("Tailrace's reader, " if way == "T" else "Tailrace for PnetCDF, ") + CODECS[rest]
    return f"Tailrace for PnetCDF, trz, layout {rest}"


def style_of(method):
    colour = COLOURS.get(method) or COLOURS.get(method.partition("_")[2], "#000000")
    hatch = {"hatch": "//", "edgecolor": "white"} if method.startswith("T_") else {}
    return {"color": colour} if not hatch else {"facecolor": colour, "linewidth": 0, **hatch}


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def limit_text(limit):
    return f"storage of {float(limit):g} MB/s a rank" if float(limit) else "page cache, no limit"


def chunk_text(n_bytes):
    size = int(n_bytes)
    return f"chunks of {size >> 10} KiB" if size < 2**20 else f"chunks of {size >> 20} MiB"


def draw_panel(axes, rows, across, text_of, methods):
    groups = list(dict.fromkeys(row[across] for row in rows))
    width = 0.88 / len(methods)
    for row in rows:
        x = groups.index(row[across]) + (methods.index(row["method"]) - (len(methods) - 1) / 2) \
            * width
        low, median, high = (float(row[key]) for key in ("smallest_s", "total_s", "largest_s"))
        axes.bar(x, median, 0.88 * width, **style_of(row["method"]))
        axes.plot([x, x], [low, high], color="black", linewidth=0.8)
        if row["method"] not in UNCOMPRESSED:
            axes.annotate(f"{float(row['times_faster']):.1f}", (x, high), ha="center",
                          va="bottom", fontsize=7, xytext=(0, 1), textcoords="offset points")
    if len(groups) > 1 or across == "chunk_bytes":
        axes.set_xticks(range(len(groups)), [text_of(group) for group in groups], fontsize=9)
    else:
        axes.set_xticks([])
    axes.tick_params(axis="y", labelsize=9)
    axes.set_ylim(0, 1.12 * max(float(row["largest_s"]) for row in rows))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(what, rows, path):
    methods = list(dict.fromkeys(row["method"] for row in rows))
    limits = list(dict.fromkeys(row["limit_MBps"] for row in rows))
    lines = list(dict.fromkeys(row.get("application", "") for row in rows))
    ranks = list(dict.fromkeys(row["ranks"] for row in rows))
    n_groups = len({row["chunk_bytes" if what == "chunks" else "ranks"] for row in rows})
    legend_inches = 0.35 + 0.21 * -(-len(methods) // 3)
    height = 2.7 * len(lines) + legend_inches
    width = max(9, (0.21 * len(methods) * n_groups + 0.9) * len(limits))
    figure, panels = plt.subplots(len(lines), len(limits), squeeze=False, figsize=(width, height))
    for i, application in enumerate(lines):
        for j, limit in enumerate(limits):
            mine = [row for row in rows if row["limit_MBps"] == limit
                    and row.get("application", "") == application]
            if what == "chunks":
                draw_panel(panels[i][j], mine, "chunk_bytes", chunk_text, methods)
            else:
                draw_panel(panels[i][j], mine, "ranks", rank_text, methods)
            title = [application, limit_text(limit)]
            if len(ranks) == 1:
                title.append(rank_text(ranks[0]))
            panels[i][j].set_title(", ".join(filter(None, title)), fontsize=10)
        panels[i][0].set_ylabel("s, from opening to closing", fontsize=9)
    handles = [plt.Rectangle((0, 0), 1, 1, **style_of(method)) for method in methods]
    figure.tight_layout(rect=(0, legend_inches / height, 1, 1))
    figure.legend(handles, list(map(label_of, methods)), ncols=3, fontsize=8.5, frameon=False,
                  loc="lower center",
                  title="numbers: times faster than the faster of PnetCDF's uncompressed ways",
                  title_fontsize=8.5)
    figure.savefig(path, dpi=130)


def rank_text(ranks):
    return f"{ranks} rank{'s' if ranks != '1' else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "chunks", "read"])
    parser.add_argument("csv")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    draw(options.what, read(options.csv), options.output)


if __name__ == "__main__":
    main()
