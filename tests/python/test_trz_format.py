"""Chunk format of trz: our decoder compared with one in plain Python, written from the document.

trz_reference.py decodes by trz/docs/trz-format.md. trz_format_cases.py makes chunks with the real
encoder and compares, in a separate process. Golden chunks must decode to their values forever.
"""

import pathlib
import sys

import pytest

from test_trz_filter import run

CASES = pathlib.Path(__file__).parent / "trz_format_cases.py"


@pytest.mark.sample(4)
@pytest.mark.parametrize("group, least", [
    ("special", 2000), ("long", 12), ("books", 20), ("vocabulary", 24), ("golden", 53),
    ("newer", 1000),
    *(pytest.param(group, least, marks=pytest.mark.full) for group, least in
      [("bounded", 2500), ("exact", 3000), ("fitted", 90), ("nested", 60), ("decimals", 600),
       ("joined", 80), ("refined", 150), ("damaged", 1000)]),
])
def test_both_decoders_agree(group, least):
    """Values are equal bit for bit; of damaged chunks, both decoders refuse the same."""
    done = run(sys.executable, "-W", "ignore", CASES, group, package=True)
    assert int(done.stdout.split()[0]) >= least, done.stdout
