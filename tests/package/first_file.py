"""The first compressed file of a user who has installed a wheel, and the programs that read it.

Without arguments only NumPy and tailrace are needed. --others: further packages are used if they
are installed. h5py and netCDF4 read the file in this process as well, xarray opens it, and plug-ins
of hdf5plugin write through the HDF5 inside the engine. scripts/check-wheel and cibuildwheel run
this.
"""

import importlib.util
import os
import pathlib
import re
import sys
import tempfile

import numpy as np
import tailrace

BOUND = 1e-3


def field():
    axes = np.meshgrid(*[np.linspace(0, 3, n) for n in (24, 90, 180)], indexing="ij")
    return sum(np.sin(2 * axis) for axis in axes).astype("f4")


def first_file(path, u):
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("time", "y", "x"), data=u, abs=BOUND, codec="trz")
        file.create_variable("v", ("time", "y", "x"), data=u, codec="xor")
        file.create_variable("w", ("time", "y", "x"), data=u, abs=BOUND, codec="portable")
    with tailrace.open(path) as file:
        for name, bound in (("u", BOUND), ("v", 0), ("w", BOUND)):
            error = np.abs(file[name][...] - u).max()
            assert error <= bound, (name, error)
        ratio = file["u"].ratio
    assert ratio > 4, ratio
    assert tailrace.verify(path, path).check().ok
    assert tailrace.info(path)["fields"]
    return ratio


def libraries():
    """Files of this process that are an HDF5, or a dependency of the system's HDF5. Files inside
    other wheels are excluded, because tailrace imports h5py if it is installed."""
    if sys.platform != "linux":
        return []  # the system has no list
    maps = pathlib.Path("/proc/self/maps")
    found = {line.split()[-1] for line in maps.read_text().splitlines() if "/" in line}
    others = re.compile(r"/(?!tailrace\.libs/)[^/]*\.libs/")
    return [path for path in found if not others.search(path)
            and any(word in path for word in ("/libhdf5", "/libcurl", "/libkrb5", "/libmpi"))]


def has(name):
    return importlib.util.find_spec(name) is not None


def others(path, u):
    """Read the file with the other packages that are installed. @returns their names."""
    import h5py
    read = []
    with h5py.File(path) as file:
        for name, bound in (("u", BOUND), ("v", 0), ("w", BOUND)):
            assert np.abs(file[name][...] - u).max() <= bound, name
        read.append("h5py")
    if has("netCDF4"):
        import netCDF4
        with netCDF4.Dataset(path) as file:
            for name, bound in (("u", BOUND), ("v", 0)):
                assert np.abs(file[name][...] - u).max() <= bound, name
        read.append("netCDF4")
    if has("xarray"):
        import xarray as xr
        with xr.open_dataset(path, engine="tailrace") as dataset:
            assert np.abs(dataset.u.values - u).max() <= BOUND
        read.append("xarray")
    if has("hdf5plugin"):
        for codec, bound in (("zstd", 0), ("blosc2", 0), ("zfp", BOUND), ("sz3", BOUND)):
            name = os.path.join(os.path.dirname(path), f"{codec}.nc")
            with tailrace.open(name, "w") as file:
                file.create_variable("u", ("time", "y", "x"), data=u, codec=codec,
                                     abs=bound or None)
            import hdf5plugin  # noqa: F401 - its import lets h5py read them.
            with h5py.File(name) as file:
                assert file["u"].id.get_create_plist().get_nfilters() > 0
                assert np.abs(file["u"][...] - u).max() <= bound, codec
            read.append(codec)
    return read


def main():
    u = field()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "first.nc")
        ratio = first_file(path, u)
        alone = libraries()
        assert alone == [], f"more than the wheel is loaded: {alone}"
        said = f"first file: {u.nbytes / 1e6:.1f} MB, ratio {ratio:.1f}"
        if "--others" in sys.argv:
            said += ", also by " + ", ".join(others(path, u))
    print(said)


if __name__ == "__main__":
    main()
