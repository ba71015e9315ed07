"""Helpers that run the command line, alone and on several ranks, and that provide data.

TAILRACE is the program, MPIEXEC the launcher (default: mpiexec). Real data are in ../shared/data
next to the repository. If that folder is absent, generated data of the same kinds replace them, and
the test's output reports it.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time
import warnings

import h5py
import hdf5plugin
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REAL_DATA = ROOT.parent / "shared" / "data"
ENVIRONMENT = {
    **os.environ,
    "HDF5_PLUGIN_PATH": hdf5plugin.PLUGINS_PATH,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def program():
    path = os.environ.get("TAILRACE", str(ROOT / "build" / "bin" / "tailrace"))
    if not pathlib.Path(path).exists():
        pytest.skip(f"{path} is not built")
    return path


def lab_program():
    """tailrace-lab, in the folder of tailrace."""
    path = pathlib.Path(program()).with_name("tailrace-lab")
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return str(path)


def bench_script(name):
    """Find a script of lab/bench by its name, in any folder."""
    path, = [*(ROOT / "lab" / "bench").glob(name), *(ROOT / "lab" / "bench").glob(f"*/{name}")]
    return path


def find_bench_modules(monkeypatch):
    """Let this test import the scripts of lab/bench as modules."""
    for folder in ("data", "papers", "plots", "tables"):
        monkeypatch.syspath_prepend(str(ROOT / "lab" / "bench" / folder))


def launcher():
    path = shutil.which(os.environ.get("MPIEXEC", "mpiexec"))
    if path is None:
        pytest.skip("no mpiexec")
    return path


def launcher_on_this_node():
    """Find an mpiexec that starts all ranks on this node. Skips that of tests/nodes/cluster, which
    distributes ranks over nodes."""
    if "CLUSTER_NODES" not in os.environ:
        return launcher()
    folders = os.environ["PATH"].split(os.pathsep)
    others = [folder for folder in folders if not folder.startswith("/mnt/cluster")]
    return shutil.which("mpiexec", path=os.pathsep.join(others))


#: Commands of tailrace-lab; all others are tailrace's.
LAB_COMMANDS = ("bench", "schedule", "simulate", "train-book")


def command(*arguments, ranks=1):
    is_lab = len(arguments) > 0 and arguments[0] in LAB_COMMANDS
    words = [lab_program() if is_lab else program(), *map(str, arguments)]
    return [launcher(), "-n", str(ranks), *words] if ranks > 1 else words


def tailrace(*arguments, ranks=1, code=0, timeout=600, environment=None):
    """Run a command, check its exit code, and return the completed process."""
    done = subprocess.run(command(*arguments, ranks=ranks), capture_output=True, text=True,
                          timeout=timeout, env=environment or ENVIRONMENT)
    words = f"exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    assert done.returncode == code, words
    return done


def numbers(*arguments, **keywords):
    """Return the JSON that a command prints with --json -."""
    return json.loads(tailrace(*arguments, "--json", "-", **keywords).stdout)


def let_clients_forget():
    """Wait until clients of shared file systems drop cached attributes, which HDF5 uses."""
    if "CLUSTER_NODES" in os.environ:
        time.sleep(1.2)


@contextlib.contextmanager
def small_disk_at(folder, size):
    """Mount a file system of `size` bytes ("256k") at a new folder, during the context."""
    if "CLUSTER_NODES" in os.environ:
        pytest.skip("what is mounted here is not there on the other nodes")
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder],
                             capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def own_lines(text):
    """Return tailrace's own messages on stderr, without the launcher's text about exit codes."""
    return [line for line in text.splitlines() if line.startswith("tailrace")]


def smooth(shape, seed=0):
    """Return a random smooth field, like those of simulations."""
    axes = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij")
    generator = np.random.default_rng(seed)
    values = sum(np.sin(generator.uniform(1, 4) * a + generator.uniform(0, 6)) for a in axes)
    return (values + 0.01 * generator.standard_normal(shape)).astype("f4")


def stand_in(path, name):
    """Write a file with the kinds of data of the real file `name`: fields, particles, integers."""
    with h5py.File(path, "w") as file:
        if name.startswith("hep"):
            file.create_dataset("spill/evt", data=np.arange(1706, dtype="u4")[:, None],
                                maxshape=(None, 1), chunks=(128, 1), compression="gzip")
            file.create_dataset("neutrino/vtx.x", (0, 1), "f4", maxshape=(None, 1))
        elif name.startswith("climate"):
            values = smooth((20, 90, 180))
            values[:, :20] = -1e10
            file.create_dataset("levitus_temp", data=values, chunks=(3, 23, 45),
                                compression="gzip", shuffle=True)
            values[:, :20] = np.nan
            file.create_dataset("levitus_salt_nan", data=values)
        elif "particles" in name or "lammps" in name:
            for i, name in enumerate(["x", "y", "z", "vx", "vy", "vz"]):
                file[name] = np.random.default_rng(i).standard_normal(100000).astype("f4")
        else:
            for i, field in enumerate(["baryon_density", "temperature", "velocity_x"]):
                dataset = file.create_dataset(f"native_fields/{field}", data=smooth((64,) * 3, i))
                dataset.attrs["units"] = "K"


def data_file(name, folder):
    """The real data file, or its stand-in in `folder`."""
    real = REAL_DATA / name
    if real.exists():
        return real
    warnings.warn(f"{real} is absent: a generated file takes its place")
    path = folder / ("in_" + pathlib.Path(name).name)
    if not path.exists():
        stand_in(path, name)
    return path


def datasets(path):
    """All datasets of an HDF5 file by path, as h5py reads them."""
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.update({name: item[()]})
                        if isinstance(item, h5py.Dataset) else None)
    return found


def attributes(path, dataset):
    with h5py.File(path, "r") as file:
        return dict(file[dataset].attrs)


def largest_error(original, decoded):
    """Largest |decoded - original| of the finite values; special values must be equal."""
    original = np.asarray(original)
    if original.size == 0:
        return 0.0
    if original.dtype.kind != "f":
        assert np.array_equal(original, decoded)
        return 0.0
    finite = np.isfinite(original)
    assert np.array_equal(original[~finite], decoded[~finite], equal_nan=True)
    if not finite.any():
        return 0.0
    return float(np.max(np.abs(original[finite].astype("f16") - decoded[finite].astype("f16"))))
