"""tests/golden/messages.txt has every error message of the sources, so that diffs show changes."""

import subprocess
import sys

from cli_tools import ROOT


def test_the_catalogue_is_what_the_sources_say():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "messages", "--check"],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
