"""Values on a device: put_device and the caller's function that copies.

The device of tests/fake_device is memory that the host cannot read: any access but the function's
ends the program. The programs check that all ranks get the same errors.
"""

import subprocess

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, launcher
from hdf5_runs import built, by_deflate

pytestmark = pytest.mark.sample(8)

MODES = ["mode=sync", "mode=async", "mode=in_situ", "mode=in_situ,hold=promise"]
#: Chunks that follow the boxes; chunks that several ranks share and that cut the rows; chunks of
#: two steps; little memory.
OPTIONS = ["codec=deflate", "codec=none", "codec=deflate,chunk=11x37", "codec=auto",
           "codec=deflate,chunk=2x24x160", "memory=2MB,codec=deflate,chunk=16x160",
           "codec=deflate,layout=predictive", "codec=deflate,lab.order=johnson"]


def device_run(name, ranks, *words):
    done = subprocess.run([launcher(), "-n", str(ranks), built("bin", "fake_device", name), *words],
                          capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expected(step):
    return step * 1000.0 + (np.arange(96 * 160) % 997 * 0.25).reshape(96, 160)


def check(path, steps=range(4)):
    with h5py.File(path) as file:
        for entry, step in enumerate(steps):
            np.testing.assert_array_equal(file["rows"][entry], expected(step))
        assert list(file["scalar"]) == [step + 0.5 for step in steps]


@pytest.mark.sample(16)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_the_file_is_that_of_values_in_memory(mode, options, ranks, tmp_path):
    if "layout=" in options and mode != "mode=sync":
        options = "codec=deflate,layout=claimed"
    text = f"{mode},{options}"
    host = device_run("device_steps", ranks, tmp_path / "host.h5", text, "host")
    device = device_run("device_steps", ranks, tmp_path / "device.h5", text, "device")
    assert host.startswith("0 failed") and device.startswith("0 failed")
    files = [tmp_path / "host.h5", tmp_path / "device.h5"]
    if "auto" in options:
        files = [by_deflate(path) for path in files]
    check(files[1])
    with h5py.File(files[0]) as one, h5py.File(files[1]) as other:
        for name in ("rows", "columns", "scalar"):
            assert one[name].chunks == other[name].chunks
            assert one[name][()].tobytes() == other[name][()].tobytes()
    largest = int(device.splitlines()[1].split()[0])
    assert 0 < largest <= 8 << 20
    if "chunk=11x37" in options:
        assert largest <= 96 * 160 * 8  # Samples and ranges are read in larger boxes than chunks.


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("options", ["", ",chunk=11x37", ",chunk=2x24x160"])
@pytest.mark.parametrize("mode", MODES)
def test_a_copy_that_fails_is_an_error_of_its_step_on_all_ranks(mode, options, ranks, tmp_path):
    said = device_run("device_steps", ranks, tmp_path / "out.h5", f"{mode},codec=deflate{options}",
                      "fails")
    failed, _, text = said.split("\n", 2)
    assert failed == "1 failed"
    assert "copies from the device failed with 700" in text and "field \"/" in text
    with h5py.File(tmp_path / "out.h5") as file:
        n_steps = len(file["scalar"])
        assert n_steps in ((3,) if mode == "mode=sync" else (2, 3))
        assert {0.5, 3.5} <= set(file["scalar"]) and 1.5 not in file["scalar"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_without_a_function_each_step_fails(ranks, tmp_path):
    said = device_run("device_steps", ranks, tmp_path / "out.h5", "", "without")
    assert said.startswith("4 failed") and "without a function that copies from it" in said


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mode", ["sync", "in_situ"])
def test_the_same_in_fortran(mode, ranks, tmp_path):
    """Fortran's first dimension is the last one here."""
    device_run("device_steps_in_fortran", ranks, tmp_path, mode)
    with h5py.File(tmp_path / "good.h5") as file:
        first = 1 + np.arange(6)[None, :] + 10 * np.arange(5 * ranks)[:, None]
        for step in range(3):
            np.testing.assert_array_equal(file["u"][step], first + 1000 * step)
        assert list(file["scalar"]) == [0, 1000, 2000]
        assert file["u"].dtype == np.float32


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_same_in_cpp(ranks, tmp_path):
    device_run("device_steps_in_cpp", ranks, tmp_path)
