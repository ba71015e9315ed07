"""Reader matrix: makes Tailrace's files, reads them with every stock reader, and compares.

A cell is "yes" if every value, text and attribute that is requested from the reader equals that of
h5py. It is "values" if only attributes are missing or differ, and "filter" if the reader fails and
names the missing filter. It is "no" if the reader fails otherwise, and WRONG if it returns other
values without an error. scripts/reader-matrix runs this.
"""

import argparse
import concurrent.futures
import json
import math
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass, field

import h5py
import hdf5plugin  # Registers its filters with h5py.

import matrix_files
import matrix_forms
import dataset_lines
from matrix_readers import FOLDER, READERS, ROOT, set_up

#: The page with all cells, and the guide with a summary of them.
PAGE = ROOT / "lab" / "bench" / "results" / "readers-matrix.md"
GUIDE = ROOT / "docs" / "readers.md"
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
#: Filters of HDF5 itself, and names of other filters in errors.
BUILT_IN = {1, 2, 3, 4, 5, 6}
FILTER_NAMES = {481: "trz", 482: "xor", 32015: "zstd|zstandard", 32000: "lzf"}
TIMEOUT_S = 240
MARKS = ("<!-- {}: scripts/reader-matrix --store -->", "<!-- end of {} -->")


@dataclass
class Dataset:
    facts: dict
    attributes: dict
    filters: set
    is_text: bool


@dataclass
class Cell:
    verdict: str  # yes, values, filter, no, WRONG, nothing (nothing requested), untried
    problems: dict = field(default_factory=dict)  # Names of datasets, by reason.

    def why(self):
        return "; ".join(list(self.problems)[:2])


# --- contents of a file --------------------------------------------------------------------------

def contents(path):
    """All datasets that readers must read, by name, with h5py; "/" is the root group."""
    found = {}

    def look(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if np_bytes(item.attrs.get("NAME", b"")).startswith(NO_VARIABLE):
            return
        pipeline = item.id.get_create_plist()
        filters = {pipeline.get_filter(i)[0] for i in range(pipeline.get_nfilters())}
        facts = dataset_lines.checksum(item[()])
        attributes = dataset_lines.attributes_of(item.attrs)
        found[name] = Dataset(facts, attributes, filters, "text" in facts)

    with h5py.File(path) as file:
        found["/"] = Dataset({}, dataset_lines.attributes_of(file.attrs), set(), False)
        file.visititems(look)
    return found


def np_bytes(value):
    return bytes(value) if isinstance(value, bytes) else str(value).encode()


def asked(reader, path, name, dataset):
    if name == "/":
        return reader.attributes and bool(dataset.attributes)
    return not ((dataset.is_text and not reader.text) or ("/" in name and not reader.groups)
                or len(dataset.facts["shape"]) < reader.minimum_rank
                or (reader.netcdf_only and path.suffix != ".nc"))


# --- running a reader -----------------------------------------------------------------------------

def lines_of(reader, paths):
    """Run a reader on all files; return its lines for each file. A crash loses only one file."""
    found = {str(path): [] for path in paths}
    left = list(map(str, paths))
    while left:
        done = reader.start(left, TIMEOUT_S)
        ended = set()
        for text in done.stdout.splitlines():
            if not text.startswith('{"file"'):
                continue
            line = json.loads(text)
            if line.get("end"):
                ended.add(line["file"])
            else:
                found[line["file"]].append(line)
        missing = [path for path in left if path not in ended]
        if not missing:
            break
        # Omits the signal, because that of a broken heap differs between runs.
        crashed = done.returncode < 0 or "irrecoverable" in done.stderr
        why = "the process crashed" if crashed else f"the process ended with {done.returncode}"
        found[missing[0]].append({"name": "", "error": why})
        left = missing[1:]
    return found


def close(a, b):
    return isinstance(b, (int, float)) and math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)


def plain_text(text):
    """A text without separators of its elements, because readers join them differently."""
    return re.sub(r"[|\s]", "", str(text))


def flat_shape(facts):
    """The shape for a reader that returns all values in one dimension."""
    return [math.prod(facts["shape"])]


def same_values(expected, line):
    if "text" in expected:  # Some readers convert texts to characters, with one more dimension.
        if plain_text(line.get("text")) != plain_text(expected["text"]):
            return "other text" if "text" in line else "no text"
        return ""
    if "shape" in line and line["shape"] not in (expected["shape"], flat_shape(expected)):
        return f"shape {line['shape']}, not {expected['shape']}"
    if "text" in line:
        return "texts, not numbers"
    for key in ("sum", "weighted"):
        if not close(expected[key], line.get(key)):
            return "other values"
    return ""


def same_attributes(expected, found):
    for name, value in expected.items():
        if name not in found:
            return f"attribute {name} is missing"
        if isinstance(value, str):
            if plain_text(found[name]) != plain_text(value):
                return f"other text in attribute {name}"
        else:
            got = found[name] if isinstance(found[name], list) else [found[name]]
            if len(got) != len(value) or not all(map(close, value, got)):
                return f"other numbers in attribute {name}"
    return ""


def difference(dataset, line, with_attributes):
    """("", "") if equal; otherwise the verdict and the reason."""
    if "error" in line:
        return "no", line["error"]
    if dataset.facts and (wrong := same_values(dataset.facts, line)):
        comparable = ("text" in line) == ("text" in dataset.facts) and len(line) > 3
        return ("WRONG" if comparable else "no"), wrong
    if with_attributes and (wrong := same_attributes(dataset.attributes,
                                                     line.get("attributes", {}))):
        return "values", wrong
    return "", ""


def names_filter(dataset, why):
    foreign = dataset.filters - BUILT_IN
    names = "|".join([rf"\b{each}\b" for each in foreign]
                     + [FILTER_NAMES[each] for each in foreign if each in FILTER_NAMES])
    return bool(foreign) and re.search(names, why, re.I)


def judge(reader, path, datasets, lines):
    """One cell."""
    wanted = {name: each for name, each in datasets.items() if asked(reader, path, name, each)}
    if not wanted:
        return Cell("nothing")
    by_name = {line["name"]: line for line in lines}
    opening = by_name.get("", {}).get("error")
    problems = []
    for name, dataset in wanted.items():
        line = by_name.get(name)
        if line is None:
            problems.append((name, dataset, "no", opening or "not listed"))
            continue
        verdict, why = difference(dataset, line, reader.attributes)
        if verdict:
            problems.append((name, dataset, verdict, why))
    if not problems:
        return Cell("yes")
    if all(verdict == "no" and names_filter(dataset, why) for _, dataset, verdict, why in problems):
        return Cell("filter")
    verdict = next(each for each in ("WRONG", "no", "values")
                   if each in [problem[2] for problem in problems])
    reasons = {}
    for name, _, _, why in problems:
        reasons.setdefault(short(why), []).append(name)
    return Cell(verdict, reasons)


def short(why):
    """An error's text without paths, addresses and unprintable bytes, on one line."""
    why = re.sub(r"[^\s -~]", "", str(why))
    why = re.sub(r"(/[\w.=-]+){2,}/", "", why)
    why = re.sub(r"0x[0-9a-f]+", "0x...", re.sub(r"\s+", " ", why))
    return why.replace("`", "'")[:160].strip()


# --- the tables -----------------------------------------------------------------------------------

@dataclass
class Matrix:
    title: str
    heads: list
    rows: list  # lists of texts, one for each head
    paths: list
    cells: dict = field(default_factory=dict)  # (row, reader's name): Cell


def measure(matrices, readers, n_jobs):
    """Fill the matrices' cells; return the readers' versions, or the reasons why they were not
    tried."""
    expected = {path: contents(path) for each in matrices for path in each.paths}
    paths = list(expected)

    def run(reader):
        try:
            version = reader.version()
        except RuntimeError as error:
            return reader, f"not tried: {error}", None, 0
        start = time.monotonic()
        return reader, version, lines_of(reader, paths), time.monotonic() - start

    versions = {}
    with concurrent.futures.ThreadPoolExecutor(n_jobs) as pool:
        for reader, version, lines, seconds in pool.map(run, readers):
            versions[reader.name] = version
            print(f"reader-matrix: {reader.name}: {version} ({seconds:.0f} s)", flush=True)
            for matrix in matrices:
                for row, path in enumerate(matrix.paths):
                    cell = (Cell("untried") if lines is None
                            else judge(reader, path, expected[path], lines[str(path)]))
                    matrix.cells[row, reader.name] = cell
    return versions


TEXTS = {"yes": "yes", "filter": "filter", "nothing": "–", "untried": "not tried"}


def tables(matrix, readers):
    """Markdown: a table for each family of readers, followed by the numbered reasons."""
    out, notes = [], {}
    for family, caption in (("HDF5", "Readers on the HDF5 library"),
                            ("own", "Readers with an implementation of their own")):
        columns = [reader for reader in readers if reader.family == family]
        if not columns:
            continue
        heads = matrix.heads + [reader.name for reader in columns]
        out += [f"{caption}:", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row, words in enumerate(matrix.rows):
            cells = []
            for reader in columns:
                cell = matrix.cells[row, reader.name]
                text = TEXTS.get(cell.verdict)
                if text is None:
                    number = notes.setdefault(f"{reader.name}: `{cell.why()}`", len(notes) + 1)
                    text = f"{cell.verdict} ({number})"
                cells.append(text)
            out.append(f"| {' | '.join([*words, *cells])} |")
        out.append("")
    out += [f"{number}. {why}" for why, number in notes.items()]
    return "\n".join(out).strip() + "\n"


def readers_table(readers, versions):
    out = ["| reader | version | asked for |", "|---|---|---|"]
    out += [f"| {reader.name} | {versions[reader.name]} | {reader.note or 'everything'} |"
            for reader in readers]
    return "\n".join(out) + "\n"


#: Columns of the summary: codecs, and whether chunk indexes are those of HDF5 1.10.
GROUPS = {"deflate, portable": (("none", "deflate", "portable"), False),
          "the same, HDF5 1.10's indexes": (("deflate", "portable"), True),
          "zstd": (("zstd",), False), "trz, xor": (("trz", "xor"), False)}
WORST_FIRST = ("WRONG", "no", "filter", "values", "yes", "not tried")


def has_newer_indexes(door, form):
    """True if chunk indexes are those of HDF5 1.10: on request, or for growing fields."""
    return form == matrix_files.NEWER or (door == "C++, steps over time" and form == "default")


def worst(cells):
    """The worst verdict of some cells, without the numbers of reasons."""
    verdicts = {re.sub(r" \(\d+\)$", "", cell) for cell in cells}
    return next((each for each in WORST_FIRST if each in verdicts), "–")


def summary(cells, versions):
    """Markdown for the guide: the worst verdict of each reader, by codecs and chunk indexes."""
    out = [f"| reader | version | {' | '.join(GROUPS)} |", "|---" * (len(GROUPS) + 2) + "|"]
    for reader, version in versions.items():
        verdicts = [worst(cell for ((door, codec, form), name), cell in cells.items()
                          if name == reader and codec in codecs
                          and has_newer_indexes(door, form) == newer)
                    for codecs, newer in GROUPS.values()]
        out.append(f"| {reader} | {version} | {' | '.join(verdicts)} |")
    return "\n".join(out) + "\n"


def summary_of(page):
    """The summary of the tables in a page."""
    return summary(cells_of(stored(page, "reader matrix")),
                   versions_of(stored(page, "reader versions")))


def versions_of(text):
    """Versions by reader, of the Markdown that readers_table() makes."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[1] for row in rows[1:]}


def stored(page, name):
    start, end = (mark.format(name) for mark in MARKS)
    return page.split(start)[1].split(end)[0]


def replace(page, name, text):
    start, end = (mark.format(name) for mark in MARKS)
    before, rest = page.split(start)
    return before + start + "\n" + text + end + rest.split(end)[1]


def cells_of(text):
    """Map (row's words, reader) to a cell of the Markdown that tables() makes."""
    found, heads = {}, []
    for line in text.splitlines():
        if not line.startswith("| "):
            heads = heads if line.startswith("|---") else []
            continue
        words = [each.strip() for each in line.strip("| ").split(" | ")]
        if not heads:
            heads = words
            continue
        n_own = len(heads) - sum(1 for reader in READERS if reader.name in heads)
        for head, cell in zip(heads[n_own:], words[n_own:]):
            found[tuple(words[:n_own]), head] = cell
    return found


def broken_promises(page, name, now):
    """Cells of the page that promise all, or all values, and are now weaker or missing."""
    measured = cells_of(now)
    broken = []
    for key, cell in cells_of(stored(page, name)).items():
        kept = {"yes": ("yes",), "values": ("yes", "values")}.get(cell.split(" ")[0])
        found = measured.get(key, "no such cell")
        if kept and found.split(" ")[0] not in kept:
            broken.append(f"{' '.join(key[0])}, {key[1]}: {found}, not {cell}")
    return broken


def main():
    parser = argparse.ArgumentParser(prog="reader-matrix", description=__doc__.split("\n\n")[0])
    parser.add_argument("--set-up", action="store_true", help="install the readers, and stop")
    parser.add_argument("--check", action="store_true",
                        help="fail if a cell is less than readers-matrix.md promises")
    parser.add_argument("--store", action="store_true",
                        help="write the tables into readers-matrix.md and docs/readers.md")
    parser.add_argument("--readers", default="", help="only these, separated by semicolons")
    arguments = parser.parse_args()
    if arguments.set_up:
        return 1 if set_up() else 0
    h5py.h5pl.append(str(matrix_files.BUILD / "lib/hdf5/plugin").encode())
    os.environ["TAILRACE_PLUGIN_FOLDER"] = str(matrix_files.BUILD / "lib/hdf5/plugin")
    chosen = [each.strip() for each in arguments.readers.split(";") if each.strip()]
    readers = [each for each in READERS if not chosen or each.name in chosen]
    if unknown := set(chosen) - {each.name for each in readers}:
        parser.error(f"no reader {', '.join(unknown)}")
    if chosen and (arguments.store or arguments.check):
        parser.error("--readers is for a look, not for --store or --check")
    folder = FOLDER / "files"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start = time.monotonic()
    files = Matrix("reader matrix", ["file by", "codec", "form"],
                   [[row.door, row.codec, row.form] for row in matrix_files.ROWS],
                   matrix_files.make_all(folder))
    forms = Matrix("form matrix", ["form"], [[name] for name in matrix_forms.FORMS],
                   matrix_forms.make_all(folder))
    print(f"reader-matrix: {len(files.paths)} files, {len(forms.paths)} forms "
          f"({time.monotonic() - start:.0f} s)", flush=True)
    versions = measure([files, forms], readers, os.cpu_count() or 1)
    return report([files, forms], readers, versions, arguments)


def report(matrices, readers, versions, arguments):
    texts = {each.title: tables(each, readers) for each in matrices}
    texts["reader versions"] = readers_table(readers, versions)
    (FOLDER / "matrix.md").write_text("\n".join(texts.values()))
    counts, details = {}, []
    for matrix in matrices:
        for (row, reader), cell in matrix.cells.items():
            counts[cell.verdict] = counts.get(cell.verdict, 0) + 1
            details.append({"file": str(matrix.paths[row]), "row": matrix.rows[row],
                            "reader": reader, "verdict": cell.verdict, "problems": cell.problems})
    (FOLDER / "matrix.json").write_text(json.dumps(details, indent=1))
    print(f"reader-matrix: {counts}; {FOLDER / 'matrix.md'}")
    page = PAGE.read_text()
    if arguments.store:
        for name, text in texts.items():
            page = replace(page, name, text)
        PAGE.write_text(page)
        GUIDE.write_text(replace(GUIDE.read_text(), "reader summary", summary_of(page)))
    if arguments.check:
        broken = [each for matrix in matrices
                  for each in broken_promises(page, matrix.title, texts[matrix.title])]
        if stored(GUIDE.read_text(), "reader summary").strip() != summary_of(page).strip():
            broken.append(f"{GUIDE.name}: its summary is not that of {PAGE.name}")
        print("\n".join(f"FAILED: {each}" for each in broken))
        print(f"{len(cells_of(texts['reader matrix']))} cells, {len(broken)} promises broken")
        return 1 if broken else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
