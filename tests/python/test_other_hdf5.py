"""Programs with their own HDF5, whose symbols take precedence over ours.

The other HDF5 is a few lines of C. It is first in the process, like a library without symbol
versions to which a program is linked.
"""

import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import ENVIRONMENT, program, tailrace
from test_examples import folder_of_examples

ANOTHER_VERSION = """
int H5get_libversion(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1; *minor = 99; *release = 7;
  return 0;
}
"""
SOME_FUNCTIONS = "long H5FDregister(const void* driver) { (void)driver; return -1; }"


@pytest.fixture(params=["another version", "some functions"])
def other(request, tmp_path):
    """Build a library libhdf5.so; return it with the expected message."""
    source = ANOTHER_VERSION if request.param == "another version" else SOME_FUNCTIONS
    (tmp_path / "other.c").write_text(source)
    library = tmp_path / "libhdf5.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", tmp_path / "other.c",
                    "-o", library], check=True)
    said = "HDF5 1.99.7 in " if request.param == "another version" else "and some reach "
    return library, f"{said}{library}"


def refused(text, library, said):
    assert "Tailrace is built for HDF5 " in text and said in text
    listed = text.split("(loaded: ")[1].split(")")[0].split(", ")
    assert str(library) in listed and len(listed) >= 2, listed
    assert "link the program to the HDF5 that Tailrace was built with" in text


def test_the_command_line_refuses_it_by_name(other, tmp_path):
    library, said = other
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["u"] = np.arange(10.0)
    np.save(tmp_path / "u.npy", np.arange(10.0))
    environment = {**ENVIRONMENT, "LD_PRELOAD": str(library)}
    for words in (["info", tmp_path / "in.h5"],
                  ["repack", tmp_path / "u.npy", "-o", tmp_path / "out.h5"]):
        done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True,
                              env=environment, timeout=600, check=False)
        assert done.returncode not in (0, -6)
        refused(done.stderr, library, said)
    assert not list(tmp_path.glob("out.h5*"))
    tailrace("info", tmp_path / "in.h5")


@pytest.mark.parametrize("other", ["another version"], indirect=True)  # h5py needs the functions.
def test_python_is_told(other, tmp_path):
    library, said = other
    program_text = "import sys, tailrace; tailrace.open(sys.argv[1], 'w')"
    done = subprocess.run([sys.executable, "-c", program_text, str(tmp_path / "out.nc")],
                          capture_output=True, text=True, timeout=600, check=False,
                          env={**python_package.package_environment(), "LD_PRELOAD": str(library)})
    assert done.returncode == 1 and "UnsupportedError" in done.stderr
    refused(done.stderr, library, said)
    assert not list(tmp_path.glob("out.nc*"))


def test_a_program_on_the_c_api_is_told(other, tmp_path):
    library, said = other
    done = subprocess.run([str(folder_of_examples() / "write_field"), str(tmp_path / "out.h5")],
                          capture_output=True, text=True, timeout=600, check=False,
                          env={**ENVIRONMENT, "LD_PRELOAD": str(library)})
    assert done.returncode not in (0, -6)
    refused(done.stderr, library, said)
    assert not list(tmp_path.glob("out.h5*"))
