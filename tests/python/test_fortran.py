"""Fortran module: h5py reads the output of its programs, which also check themselves.

Arrays are (last dimension, ..., first dimension) here, the reverse of Fortran's order.
"""

import pathlib
import re
import subprocess

import h5py
import numpy as np
import pytest
from application_runs import application, build_folder
from cli_tools import ENVIRONMENT, ROOT, launcher

NX, NY = 6, 5
TYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def run(program, *arguments, ranks):
    if not pathlib.Path(program).exists():
        pytest.skip(f"{program} is not built (no Fortran compiler, or no MPI for Fortran)")
    done = subprocess.run([launcher(), "-n", str(ranks), str(program), *map(str, arguments)],
                          capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_module(tmp_path, ranks):
    printed = run(build_folder() / "bin" / "fortran_module", tmp_path, ranks=ranks)
    assert "0 failed" in printed

    with h5py.File(tmp_path / "types.h5") as file:
        column = 10 * np.arange(1, NX + 1)
        expected = column[None, :] + np.arange(1, ranks + 1)[:, None]
        for kind in TYPES:
            dataset = file[kind[0] + str(8 * int(kind[1]))]
            assert dataset.dtype == np.dtype(kind) and (dataset[...] == expected).all()
        assert file["scalar"][()] == 2.5 and file["empty"].shape == (3, 0)
        attributes = file["f32"].attrs
        assert attributes["text"] in ("blanks at its end go", b"blanks at its end go")
        assert attributes["whole"] == 7 and attributes["wholes"].tolist() == [1, 2, 3]
        assert attributes["real"] == 0.5 and file.attrs["reals"].tolist() == [0.5, 1.5]

    planes = (np.arange(1, NX + 1)[None, None, :] + 10 * np.arange(1, NY + 1)[None, :, None]
              + 100 * np.arange(1, ranks + 1)[:, None, None])
    with h5py.File(tmp_path / "parts.h5") as file:
        for name in ["gaps", "assumed", "in_place", "halo"]:
            assert (file[name][...] == planes).all(), name
        assert (file["upside_down"][...] == planes[:, ::-1]).all()
        assert (file["expression"][...] == 2 * planes).all()
        assert abs(file["buffer"][...] - planes).max() <= 1e-6
        assert file["gaps"].chunks == (1, 2, NX) and file["in_place"].fillvalue == -9.5
        assert file["assumed"].fillvalue == -7
        assert file["expression"].fillvalue == np.float32(0.1)

    with h5py.File(tmp_path / "named.h5") as file:
        assert [scales[0].name for scales in file["u"].dims] == ["/time", "/rank", "/x"]
        assert [scales[0].name for scales in file["mean"].dims] == ["/time"]
        assert file["x"][:].tolist() == list(range(1, NX + 1))
        assert file["rank"][:].tolist() == list(range(1, ranks + 1))
        assert file["time"][:].tolist() == [0, 0.25, 0.5]
        assert file["time"].attrs["units"] in ("days since 2000-01-01", b"days since 2000-01-01")

    with h5py.File(tmp_path / "wrong.h5") as file:
        assert list(file) == ["u"]
        assert (file["u"][...] == np.arange(ranks)[:, None] * np.ones(NX)).all()

    for mode in ["async", "in_situ"]:
        with h5py.File(tmp_path / f"{mode}.h5") as file:
            assert file["t"].shape == (4, NY * ranks, NX)
            by_rank = np.repeat(np.arange(ranks), NY)[None, :, None]
            assert (file["t"][...] == np.arange(1, 5)[:, None, None] + by_rank).all()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_heat(tmp_path, ranks):
    printed = run(application("heat"), tmp_path / "heat.h5", ranks=ranks)
    assert "extents 256 256 10" in printed
    # Solve the same equation with NumPy, in its order: [column, row].
    n = 256
    now = np.full((n, n), 300.0)
    now[:n // 8, n // 4 - 1:n // 2] = 400
    with h5py.File(tmp_path / "heat.h5") as file:
        written = file["temperature"][...]
        assert file["temperature"].attrs["units"] in ("K", b"K")
        assert file.attrs["steps_between_entries"] == 50
    entries = []
    for step in range(1, 501):
        inner = now[1:-1, 1:-1]
        around = now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1]
        now[1:-1, 1:-1] = inner + 0.2 * (around - 4 * inner)
        if step % 50 == 0:
            entries.append(now.copy())
    assert abs(written - np.array(entries)).max() <= 1e-3 + 1e-9


def test_constants_are_those_of_the_header():
    """Every constant of tailrace.h, which Fortran cannot include, is also in the module."""
    header = (ROOT / "include" / "tailrace" / "tailrace.h").read_text()
    module = (ROOT / "frontends" / "fortran" / "tailrace.f90").read_text()
    ours = dict(re.findall(r"parameter, public :: (tailrace_\w+) = (\d+)", module))
    errors = re.findall(r"TAILRACE_ERROR_(\w+) = (\d+)", header)
    types = re.findall(r"TAILRACE_([FIU])(\d+) = (\d+)", header)
    words = {"F": "real", "I": "int", "U": "uint"}
    expected = {"tailrace_ok": "0"}
    expected |= {f"tailrace_{name.lower()}": number for name, number in errors}
    expected |= {f"tailrace_{words[kind]}{bits}": number for kind, bits, number in types}
    assert ours == expected
