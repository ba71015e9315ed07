"""tailrace.hpp and reader.hpp serve programs of C++17 and C++20, without a warning."""

import pathlib
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, ROOT, program

LIBRARIES = pathlib.Path(program()).resolve().parents[1] / "lib"


# The C++ examples and the MPI tests use the headers as C++20, with warnings as errors.
@pytest.mark.parametrize("standard", ["c++17", pytest.param("c++20", marks=pytest.mark.full)])
@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++-14", marks=pytest.mark.full)])
def test_a_program_of_each_standard(compiler, standard, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    built = subprocess.run(
        [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror",
         f"-I{ROOT / 'include'}", ROOT / "tests" / "package" / "cpp17.cpp", "-o",
         tmp_path / "cpp17", f"-L{LIBRARIES}", "-ltailrace", f"-Wl,-rpath,{LIBRARIES}"],
        capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    done = subprocess.run([tmp_path / "cpp17", tmp_path / "out.h5"], capture_output=True,
                          text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "as written\n", "")
    with h5py.File(tmp_path / "out.h5") as file:
        np.testing.assert_array_equal(
            file["u"][:], 10.0 * np.arange(4)[:, None] + np.arange(6))
        assert list(file["raw"]) == [7, 8, 9] and list(file.attrs["levels"]) == [1, 2]
        assert [d.label for d in file["u"].dims] or file["u"].dims[1][0].name == "/x"


def test_older_standards_are_told(tmp_path):
    (tmp_path / "old.cpp").write_text("#include <tailrace/tailrace.hpp>\nint main() {}\n")
    built = subprocess.run(["g++", "-std=c++14", "-fsyntax-only", f"-I{ROOT / 'include'}",
                            tmp_path / "old.cpp"], capture_output=True, text=True, check=False)
    assert built.returncode != 0 and "tailrace.hpp needs C++17" in built.stderr
