"""Plots gains and costs of a shared Huffman book, from the CSV of lab/bench/micro/shared_book.cpp.

    python lab/bench/plots/plot_shared_book.py lab/bench/results/shared_book.csv -o shared_book.png

Left: encode time with the previous step's book over that with each chunk's own codes. Right: the
first step's book, used for all steps: ratio over that with own codes, by the book's age, as in
figure 6 of Jin et al. 2024. Stars: the book of a step long before (--early), one for each chunk
size from 8 MiB on. A line is one bound, a row one field. Needs matplotlib.
"""

import argparse
import collections
import csv
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

CHUNKS = ("8 MiB", "1 MiB", "128 KiB")
#: Colours of the bounds, the loosest first.
COLOURS = ("#56b4e9", "#0072b2", "#e69f00", "#a63603")
LINES = {"8 MiB": "-", "1 MiB": "--", "128 KiB": ":"}
GREY = "#555555"


def read(path):
    """Read {field: {bound: {chunk: {codes: rows by step}}}}."""
    tree = collections.defaultdict(
        lambda: collections.defaultdict(lambda: collections.defaultdict(dict)))
    with open(path, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["field"] == "field":  # Heading of another run's table.
                continue
            places = tree[row["field"]][float(row["relative_bound"])][row["chunk"]]
            places.setdefault(row["codes"], []).append(row)
    return tree


def total(rows, key):
    return sum(float(row[key]) for row in rows)


def draw_times(axes, bounds):
    """Draw a group of bars for each chunk size, with one bar per bound."""
    width = 0.8 / len(bounds)
    for b, (bound, chunks) in enumerate(sorted(bounds.items(), reverse=True)):
        heights = [100 * (total(chunks[c]["previous"], "encode_s")
                          / total(chunks[c]["own"], "encode_s") - 1) for c in CHUNKS]
        axes.bar([c + (b + 0.5) * width - 0.4 for c in range(len(CHUNKS))], heights, 0.9 * width,
                 color=COLOURS[b], label=f"rel $10^{{{round(math.log10(bound))}}}$")
    axes.set_xticks(range(len(CHUNKS)), [f"chunks of {c}" for c in CHUNKS])
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_ylabel("encode time against own codes, %", color=GREY)


def draw_ages(axes, bounds):
    """Draw the ratio by the age of the book."""
    for b, (_, chunks) in enumerate(sorted(bounds.items(), reverse=True)):
        for chunk in CHUNKS:
            own = {row["step"]: int(row["encoded_bytes"]) for row in chunks[chunk]["own"]}
            rows = chunks[chunk]["first"]
            axes.plot([int(row["step"]) for row in rows],
                      [100 * (own[row["step"]] / int(row["encoded_bytes"]) - 1) for row in rows],
                      LINES[chunk], color=COLOURS[b], linewidth=1.5)
            old = chunks[chunk].get("early")
            if old:
                loss = 100 * (total(chunks[chunk]["own"], "encoded_bytes")
                              / total(old, "encoded_bytes") - 1)
                axes.plot([10 + CHUNKS.index(chunk) / 3], [loss], "*", color=COLOURS[b])
    axes.axhline(0, color=GREY, linewidth=0.8)
    if any("early" in ways for chunks in bounds.values() for ways in chunks.values()):
        axes.set_xticks([2, 4, 6, 8, 10 + 1 / 3], ["2", "4", "6", "8", "30 to 39"])
    axes.set_ylabel("ratio against own codes, %", color=GREY)
    axes.set_xlabel("steps since the book was made", color=GREY)


def draw(tree, output):
    figure, grid = plt.subplots(len(tree), 2, figsize=(10, 3.4 * len(tree)), dpi=150,
                                squeeze=False)
    for (times, ages), (field, bounds) in zip(grid, tree.items()):
        draw_times(times, bounds)
        draw_ages(ages, bounds)
        name = field.replace("_", " ")
        times.set_title(f"{name}: the previous step's book", loc="left", fontsize=10)
        ages.set_title(f"{name}: the first step's book", loc="left", fontsize=10)
        for axes in (times, ages):
            axes.grid(True, axis="y", color="#e6e6e6", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.tick_params(length=0, labelsize=9, colors=GREY)
            for side in axes.spines.values():
                side.set_visible(False)
    ages_legend = [plt.Line2D([], [], color=GREY, linestyle=LINES[c], label=f"chunks of {c}")
                   for c in CHUNKS]
    bars, _ = grid[0][0].get_legend_handles_labels()
    ages_legend.append(plt.Line2D([], [], color=GREY, linestyle="", marker="*",
                                  label="a step long before; from left: 8 MiB, 1 MiB, 128 KiB"))
    figure.legend(handles=[*bars, *ages_legend], loc="lower center", ncols=len(bars), frameon=False,
                  fontsize=9)
    figure.suptitle("A shared Huffman book over ten consecutive steps", x=0.02, ha="left",
                    fontweight="bold")
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", help="of shared_book")
    parser.add_argument("-o", "--output", default="shared_book.png", help="PNG, SVG or PDF")
    arguments = parser.parse_args()
    draw(read(arguments.csv), arguments.output)


if __name__ == "__main__":
    main()
