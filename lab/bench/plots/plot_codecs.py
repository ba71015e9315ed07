"""Plots ratio against encode speed, from the CSV of `tailrace-lab bench codecs`.

    python lab/bench/plots/plot_codecs.py lab/bench/results/trz_codecs.csv -o trz_codecs.png

Each codec has one colour. Small points: one field at one bound. The few points with far higher
ratios are drawn as carets at the upper edge. Lines: means over the fields, one marker per bound,
from the loosest (at the top) to the tightest; lossless codecs have one marker. Ratios are averaged
geometrically, speeds harmonically. The CSV of lab/bench/papers/compare_sz3.py works as well. Needs
matplotlib.
"""

import argparse
import collections
import csv
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.markers import CARETUP  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

#: Colour (after Okabe and Ito) and marker; codecs that are not listed get the remaining ones.
STYLES = {
    "trz-fast": ("#56b4e9", "^"), "trz-default": ("#0072b2", "o"), "trz-ratio": ("#0b2f5b", "s"),
    "sz3": ("#d55e00", "D"), "pysz": ("#d55e00", "D"), "pysz-lorenzo": ("#e69f00", "D"),
    "sz3-3.3.2": ("#a63603", "v"), "sz3-3.3.2-lorenzo": ("#fdae6b", "v"),
    "zfp": ("#009e73", "P"), "portable": ("#cc79a7", "X"), "zstd": ("#666666", "h"),
    "deflate": ("#a0a0a0", "h"), "none": ("#222222", "*"),
}
NAMES = {"trz-fast": "trz fast", "trz-default": "trz default", "trz-ratio": "trz ratio",
         "sz3": "SZ3 (HDF5 plug-in)", "pysz": "SZ3 (pysz)", "pysz-lorenzo": "SZ3 Lorenzo (pysz)",
         "sz3-3.3.2": "SZ3 3.3.2", "sz3-3.3.2-lorenzo": "SZ3 3.3.2 Lorenzo", "zfp": "ZFP",
         "zstd": "shuffle + Zstd", "deflate": "shuffle + deflate", "none": "copy in memory"}
SPARE_COLOURS = ("#b2df8a", "#fb9a99", "#cab2d6", "#1b7837", "#762a83")
GREY = "#555555"


def read(paths):
    """Rows with figures and kept bounds, and the number of rows omitted for a broken bound."""
    rows, n_broken = [], 0
    for path in paths:
        with open(path, newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                if not row.get("encode_MB_per_s"):
                    continue
                if int(row["values_beyond_bound"]) > 0:
                    n_broken += 1
                    continue
                row["speed"] = float(row["encode_MB_per_s"])
                row["ratio"] = float(row["ratio"])
                rows.append(row)
    return rows, n_broken


def bound_value(bound):
    return float(bound.split("=")[1]) if "=" in bound else 0.0


def mean_point(rows):
    speed = len(rows) / sum(1 / row["speed"] for row in rows)
    return speed, math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def style_of(codec, spare):
    if codec not in STYLES:
        STYLES[codec] = (next(spare), "o")
    return STYLES[codec]


def bound_text(bound):
    mode, _, value = bound.partition("=")
    exponent = math.log10(float(value))
    if abs(exponent - round(exponent)) < 1e-9:
        return f"{mode} $10^{{{round(exponent)}}}$"
    return f"{mode} {float(value):g}"


def draw_codec(axes, codec, rows, style):
    """Draw the cloud, and the line of means over it. @returns the means by bound."""
    colour, marker = style
    top = axes.get_ylim()[1]
    inside = [row for row in rows if row["ratio"] < top]
    above = [row for row in rows if row["ratio"] >= top]
    axes.scatter([r["speed"] for r in inside], [r["ratio"] for r in inside], s=9, color=colour,
                 alpha=0.3, linewidths=0, zorder=2)
    axes.scatter([r["speed"] for r in above], [0.96 * top] * len(above), s=22, color=colour,
                 alpha=0.5, linewidths=0, marker=CARETUP, zorder=2, clip_on=False)
    by_bound = collections.defaultdict(list)
    for row in rows:
        by_bound[row["bound"]].append(row)
    bounds = sorted(by_bound, key=bound_value, reverse=True)
    means = {bound: mean_point(by_bound[bound]) for bound in bounds}
    speeds, ratios = zip(*means.values())
    axes.plot(speeds, ratios, color="white", linewidth=4, zorder=3)
    axes.plot(speeds, ratios, color=colour, linewidth=1.8, zorder=4, label=NAMES.get(codec, codec),
              marker=marker, markersize=13 if marker == "*" else 8.5, markeredgecolor="white",
              markeredgewidth=0.9)
    return means


def label_bounds(axes, means):
    """Label the markers of one codec with the bounds."""
    for bound, (speed, ratio) in means.items():
        if bound_value(bound) > 0:
            axes.annotate(bound_text(bound), (speed, ratio), xytext=(8, 4),
                          textcoords="offset points", fontsize=8, color=GREY, zorder=5,
                          path_effects=[withStroke(linewidth=2.5, foreground="white")])


def frame(axes, rows):
    axes.set_xscale("log")
    axes.set_yscale("log")
    speeds = [row["speed"] for row in rows]
    ratios = [row["ratio"] for row in rows]
    axes.set_xlim(0.8 * min(speeds), 1.35 * max(speeds))
    usual = sorted(ratios)[int(0.985 * (len(ratios) - 1))]
    axes.set_ylim(0.85 * min(ratios), 1.3 * usual)
    ticks = [n * 10**e for e in range(0, 6) for n in (1, 2, 5)]
    axes.set_xticks([t for t in ticks if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]])
    axes.set_yticks([t for t in ticks if axes.get_ylim()[0] <= t <= axes.get_ylim()[1]])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", length=0, labelsize=9, colors=GREY)
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.8, zorder=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("encode speed on one core, MB/s of uncompressed values", color=GREY)
    axes.set_ylabel("compression ratio", color=GREY)


def draw(rows, n_broken, title, output):
    figure, axes = plt.subplots(figsize=(9.6, 6.4), dpi=160)
    spare = iter(SPARE_COLOURS)
    codecs = list(dict.fromkeys(row["codec"] for row in rows))
    frame(axes, rows)
    for codec in codecs:
        mine = [row for row in rows if row["codec"] == codec]
        means = draw_codec(axes, codec, mine, style_of(codec, spare))
        if codec == "trz-default" or (codec == codecs[0] and "trz-default" not in codecs):
            label_bounds(axes, means)
    fields = len({(row["file"], row["field"], row["dtype"]) for row in rows})
    figure.suptitle(title, x=0.068, y=0.975, ha="left", fontsize=14, fontweight="bold")
    note = f"{fields} fields; small points: one field at one bound; at the upper edge: above it; " \
        "lines: means over the fields"
    if n_broken:
        note += f"; {n_broken} points with a broken bound left out"
    figure.text(0.068, 0.912, note, fontsize=8.5, color=GREY)
    legend = axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9.5,
                         handlelength=1.6, labelspacing=0.75)
    for line in legend.get_lines():
        line.set_markersize(8)
    figure.tight_layout(rect=(0, 0, 1, 0.965))
    figure.savefig(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", nargs="+", help="of tailrace-lab bench codecs, or compare_sz3.py")
    parser.add_argument("-o", "--output", default="codecs.png", help="PNG, SVG or PDF")
    parser.add_argument("--title", default="Ratio and encode speed of error-bounded codecs")
    parser.add_argument("--leave-out", default="none", metavar="CODEC,...",
                        help="codecs not to draw (default: none, the copy in memory)")
    arguments = parser.parse_args()
    rows, n_broken = read(arguments.csv)
    rows = [row for row in rows if row["codec"] not in arguments.leave_out.split(",")]
    if not rows:
        parser.error("no row with figures")
    draw(rows, n_broken, arguments.title, arguments.output)


if __name__ == "__main__":
    main()
