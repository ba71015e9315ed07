"""Shared parts of tables.py and the modules of its tables: the list of tables, CSVs, Markdown."""

import csv
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
RESULTS = ROOT / "lab" / "bench" / "results"
#: Name: (page, CSV, function of its rows).
TABLES = {}


def table(page, *sources):
    """Register a function of the rows of each source as the table of the function's name."""
    def enter(function):
        TABLES[function.__name__] = (page, sources, function)
        return function
    return enter


def read(name, results=RESULTS):
    with open(results / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def lines(heads, rows):
    """A table in Markdown."""
    def line(cells):
        return "| " + " | ".join(str(cell) for cell in cells) + " |"
    for row in rows:
        if len(row) != len(heads):
            raise ValueError(f"{row} has {len(row)} cells, {heads} {len(heads)}")
    body = [line(heads), "|" + "---|" * len(heads), *map(line, rows)]
    return "".join(text.replace("|  |", "| |").replace("|  |", "| |") + "\n" for text in body)


def percent(share):
    return f"{100 * float(share):.0f} %"


def unique(values):
    return list(dict.fromkeys(values))
