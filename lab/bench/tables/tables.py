#!/usr/bin/env python3
"""Makes the tables of measurements in the pages from the CSVs of lab/bench/results.

    lab/bench/tables/tables.py             rewrites them in the pages, between their marks.
    lab/bench/tables/tables.py --check     names pages that differ, and then ends with 1.
    lab/bench/tables/tables.py --show NAME [--results FOLDER]      prints one table.

A table stands between two comments, `<!-- table NAME: ... -->` and `<!-- end of table -->`; do not
edit the text between them. NAME is a function of tables_of_*.py. Lines of a CSV that start with "#"
describe the origin of its rows. lab/bench/all measures, and then updates the tables likewise.
"""

import argparse
import pathlib
import re
import sys

import tables_of_codecs  # noqa: F401  these enter their tables in TABLES
import tables_of_outputs  # noqa: F401
import tables_of_pages  # noqa: F401
import tables_of_programs  # noqa: F401
from table_parts import RESULTS, ROOT, TABLES, read, unique

MARKS = re.compile(r"(<!-- table (\w+)[^\n]*-->\n)(.*?)(^ *<!-- end of table -->$)",
                   re.DOTALL | re.MULTILINE)


def render(name, results=RESULTS):
    _, sources, function = TABLES[name]
    return function(*(read(source, results) for source in sources))


def rewritten(text, page, results=RESULTS):
    """A page with new tables; replaces exactly the tables that have marks in it."""
    def made(match):
        name = match[2]
        if name not in TABLES or TABLES[name][0] != page:
            raise ValueError(f"{page} has marks for {name}, which is no table of it")
        indent = re.match(r" *", match[4])[0]
        body = "".join(indent + line + "\n" for line in render(name, results).splitlines())
        return match[1] + body + match[4]
    marked = [match[2] for match in MARKS.finditer(text)]
    lacking = {name for name, (where, _, _) in TABLES.items() if where == page} - set(marked)
    if lacking or len(set(marked)) != len(marked):
        raise ValueError(f"{page} has no marks for {sorted(lacking)}, or some twice: {marked}")
    return MARKS.sub(made, text)


def pages():
    return unique(page for page, _, _ in TABLES.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--show", metavar="NAME", choices=sorted(TABLES))
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, metavar="FOLDER")
    options = parser.parse_args()
    if options.show:
        print(render(options.show, options.results), end="")
        return
    differ = []
    for page in pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        new = rewritten(text, page, options.results)
        if new != text:
            differ.append(page)
            if not options.check:
                (ROOT / page).write_text(new, encoding="utf-8")
    print(f"{len(TABLES)} tables of {len(pages())} pages; " +
          (f"{'differ' if options.check else 'rewritten'}: {', '.join(differ)}" if differ
           else "all as their CSVs say"))
    sys.exit(1 if differ and options.check else 0)


if __name__ == "__main__":
    main()
