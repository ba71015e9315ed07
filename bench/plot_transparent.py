#!/usr/bin/env python3
"""Draws what bench/transparent.py measured.

    bench/plot_transparent.py write write.csv -o write.png      figure 8 of Bicer et al. 2014
    bench/plot_transparent.py chunks chunks.csv -o chunks.png   figure 7, over chunk sizes
    bench/plot_transparent.py read read.csv -o read.png         figures 12 and 13

A panel for each storage limit (read: and each application); medians, whiskers span the rounds, the
number over a bar is how many times faster it is than uncompressed data through PnetCDF. Needs
matplotlib.
"""

import argparse
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

GREY = "#555555"
#: Colours after Okabe and Ito, in the order in which methods come; the uncompressed ones are grey.
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
UNCOMPRESSED = {"P_original": "#999999", "P_independent": "#bbbbbb", "H_original": "#777777"}


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def colours_of(rows):
    methods = list(dict.fromkeys(row["method"] for row in rows))
    others = [name for name in methods if name not in UNCOMPRESSED]
    return {name: UNCOMPRESSED.get(name) or COLOURS[others.index(name) % len(COLOURS)]
            for name in methods}


def limit_words(limit):
    return f"{float(limit):g} MB/s a rank" if float(limit) else "page cache, no limit"


def chunk_words(n_bytes):
    return f"{int(n_bytes) / 2**20:g} MiB"


def draw_panel(axes, rows, across, words, colours):
    groups = list(dict.fromkeys(row[across] for row in rows))
    methods = [name for name in colours if any(row["method"] == name for row in rows)]
    width = 0.85 / len(methods)
    for row in rows:
        x = groups.index(row[across]) + (methods.index(row["method"]) - (len(methods) - 1) / 2) \
            * width
        low, median, high = (float(row[key]) for key in ("smallest_s", "total_s", "largest_s"))
        axes.bar(x, median, 0.9 * width, color=colours[row["method"]])
        axes.plot([x, x], [low, high], color=GREY, linewidth=0.8)
        if row["method"] not in UNCOMPRESSED:
            axes.annotate(f"{float(row['times_faster']):.1f}", (x, high), ha="center",
                          va="bottom", fontsize=6, xytext=(0, 1), textcoords="offset points")
    axes.set_xticks(range(len(groups)), [words(group) for group in groups], fontsize=8)
    axes.set_ylim(0, 1.12 * max(float(row["largest_s"]) for row in rows))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(what, rows, path):
    colours = colours_of(rows)
    limits = list(dict.fromkeys(row["limit_MBps"] for row in rows))
    lines = list(dict.fromkeys(row.get("application", "") for row in rows))
    figure, panels = plt.subplots(len(lines), len(limits), squeeze=False,
                                  figsize=(max(4.2 * len(limits), 7), 2.7 * len(lines) + 0.9))
    for i, application in enumerate(lines):
        for j, limit in enumerate(limits):
            mine = [row for row in rows if row["limit_MBps"] == limit
                    and row.get("application", "") == application]
            if what == "chunks":
                draw_panel(panels[i][j], mine, "chunk_bytes", chunk_words, colours)
            else:
                draw_panel(panels[i][j], mine, "ranks",
                           lambda n: f"{n} rank{'s' if n != '1' else ''}", colours)
            panels[i][j].set_title(" ".join(filter(None, (application, limit_words(limit)))),
                                   fontsize=9)
        panels[i][0].set_ylabel("s")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.tight_layout(rect=(0, 0.6 / figure.get_figheight(), 1, 1))
    figure.legend(handles, list(colours), ncols=min(len(colours), 5), fontsize=8, frameon=False,
                  loc="lower center")
    figure.savefig(path, dpi=130)


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
