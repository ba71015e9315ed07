"""tests/golden/messages.txt holds every error message of the sources, for readers of a change."""

import subprocess
import sys

from cli_tools import ROOT


def test_the_catalogue_is_what_the_sources_say():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "messages", "--check"],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
