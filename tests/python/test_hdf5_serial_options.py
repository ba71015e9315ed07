"""Serial column of the table of options and interfaces (docs/options.md): tests each cell.

tests/unit/door_rules_test.cpp tests the other interfaces ("doors").
"""

import json
import os
import pathlib
import re
import subprocess

from hdf5_runs import built

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "options.md"
# A value of each option that is not its default.
VALUES = {
    "mode": "async", "hold": "promise", "writers": "node", "threads": "1", "memory": "512MB",
    "buffer": "1MiB", "align": "4096", "fsync": "off", "journal": "on", "replace": "on",
    "compatibility": "v110", "attributes": "off", "trace-file": "t.json", "for": "size",
    "why": "predicted", "target": "psnr=60", "profile": "built-in", "plugin-path": "/tmp",
    "lab.scheduler": "johnson", "lab.balance": "paper", "lab.record": "r.json",
    "lab.order": "johnson", "codec": "portable", "bound": "abs=0.5", "guard": "sign",
    "earlier-loss": "abs=0.1", "chunk": "16x96", "layout": "dense", "verify": "on", "fill": "-5",
    "allow-wide-bound": "on", "holes": "on", "over-time": "on", "covered": "drop",
    "roles": "off",
}
# Further options that an option needs to have an effect.
WITH = {"guard": "codec=trz,bound=abs=0.5,", "allow-wide-bound": "codec=trz,bound=rel=1e-3,",
        "roles": "codec=trz,bound=rel=1e-3,",
        "chunk": "codec=deflate,", "attributes": "codec=deflate,"}
PROGRAM = """
import json, os, sys
import h5py._debian_h5py_serial, h5py, numpy as np
for row, text in json.loads(sys.argv[2]):
    os.environ["TAILRACE_OPTIONS"] = text
    done = "written"
    try:
        with h5py.File(sys.argv[1], "w") as file:
            file["u"] = np.linspace(0, 9, 64 * 96, dtype="f4").reshape(64, 96)
    except Exception:
        done = "refused"
    print(f"row {row}: {done}", file=sys.stderr)
"""


def rows_of_the_page():
    """Return (option or option=value, True if the serial interface serves it), in table order."""
    table = PAGE.read_text().split("## Which interface serves which option")[1]
    header, _, *rows = [line.split("|")[1:-1] for line in table.splitlines() if line[:1] == "|"]
    serial = [cell.strip() for cell in header].index("serial")
    return [(row[0].strip().strip("`"), row[serial].strip() == "yes") for row in rows]


def test_each_option_is_served_or_refused_as_the_page_says(tmp_path):
    rows = rows_of_the_page()
    assert len(rows) > len(VALUES)
    tried = []
    for row, serves in rows:
        option = row.split("=")[0]
        text = row + VALUES[option] if row.endswith("=") else row
        tried.append((row, (WITH.get(option, "") if serves and text != row else "") + text))
    clean = {name: value for name, value in os.environ.items()
             if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        ["/usr/bin/python3", "-c", PROGRAM, str(tmp_path / "a.h5"), json.dumps(tried)],
        capture_output=True, text=True, timeout=600, check=True,
        env={**clean, "LD_PRELOAD": str(built("lib", "libtailrace_hdf5_serial.so")),
             "HDF5_PLUGIN_PATH": ""})
    said = re.split(r"^row (.*): (written|refused)$", done.stderr, flags=re.MULTILINE)
    answers = {row: (answer, before)
               for before, row, answer in zip(said[0::3], said[1::3], said[2::3])}
    for row, serves in rows:
        answer, before = answers[row]
        assert answer == ("written" if serves else "refused"), f"{row}: {before}"
        assert serves or f"option {row.split('=')[0]}" in before, before
