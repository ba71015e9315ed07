#!/usr/bin/env python3
"""Measures writing and reading a dataset through xarray and dask: Tailrace, netCDF4 and h5netcdf.

A generated field of air temperature is written from a dask array by every method. Then dask
computes the mean over each file, chunk by chunk, on a given number of threads. The field consists
of drifting waves whose power falls with the third power of the wave number. Its values are about
280 K +- 20 K, in f32 with all digits.

Methods run in turn; the answers are compared before anything is timed. Files are in the page cache
and nothing is synced, so that codecs and libraries are measured, not the disk.

  python3 lab/bench/papers/xarray_dask.py --size 1GB --rounds 3 --csv xarray_dask.csv

needs a Python with xarray, dask, netCDF4, h5netcdf, hdf5plugin and tailrace. The results are
medians and spreads (least to greatest) of seconds, uncompressed bytes per second, and the speed
relative to netCDF4 with zlib.
"""

import argparse
import csv
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import dask
import dask.array
import h5netcdf
import hdf5plugin
import netCDF4
import numpy as np
import tailrace
import xarray as xr

BASELINE = "netCDF4, zlib 4"
UNITS = {"GB": 1e9, "MB": 1e6, "KB": 1e3}


def air_temperature(n_bytes, seed=1):
    """Field (time, y, x) of about `n_bytes`; frames are 512x1024 or smaller."""
    n_y, n_x = (512, 1024) if n_bytes >= 64e6 else (64, 128)
    n_frames = max(8, round(n_bytes / (4 * n_y * n_x)))
    random = np.random.default_rng(seed)
    k_y, k_x = np.meshgrid(np.fft.fftfreq(n_y, 1 / n_y), np.fft.rfftfreq(n_x, 1 / n_x),
                           indexing="ij")
    k = np.hypot(k_y, k_x)
    k[0, 0] = np.inf
    waves = k**-2 * np.exp(2j * np.pi * random.random(k.shape))  # power in a shell: k * k^-4
    # Short waves change sooner.
    drift = np.exp(2j * np.pi * 0.01 * random.normal(size=k.shape) * np.minimum(k, 60) ** (2 / 3))
    field = np.empty((n_frames, n_y, n_x), "f4")
    scale = 6 / np.fft.irfft2(waves, (n_y, n_x)).std()
    for frame in field:
        frame[...] = 280 + scale * np.fft.irfft2(waves, (n_y, n_x))
        waves *= drift
    return field


def methods(bound):
    """Methods: {name: (kind, encoding, engine, largest error)}."""
    zstd = dict(hdf5plugin.Zstd(clevel=3))
    zlib = {"zlib": True, "complevel": 4, "shuffle": True}
    return {
        BASELINE: ("stock", zlib, "netcdf4", 0),
        "h5netcdf, zlib 4": ("stock", zlib, "h5netcdf", 0),
        "h5netcdf, hdf5plugin's zstd 3": ("stock", zstd, "h5netcdf", 0),
        "tailrace, zlib 4": ("tailrace", zlib, "tailrace", 0),
        "tailrace, xor": ("tailrace", {"codec": "xor"}, "tailrace", 0),
        f"tailrace, trz within {bound:g} K": ("tailrace", {"codec": "trz", "abs": bound},
                                              "tailrace", bound),
    }


def write(dataset, path, method, chunks):
    kind, encoding, engine, _ = method
    encoding = {"t": {**encoding, "chunksizes": chunks}}
    if kind == "tailrace":
        tailrace.write_dataset(dataset, path, encoding=encoding)
    else:
        dataset.to_netcdf(path, engine=engine, encoding=encoding)


def read(path, method):
    """Compute the mean over the file with dask."""
    with xr.open_dataset(path, engine=method[2], chunks={}) as dataset:
        return float(dataset.t.mean(dtype="f8").compute())


def largest_error(path, method, field):
    with xr.open_dataset(path, engine=method[2], chunks={}) as dataset:
        assert dataset.t.shape == field.shape and dataset.t.dtype == field.dtype
        return max(float(np.abs(dataset.t[i].values.astype("f8") - field[i]).max())
                   for i in range(0, len(field), max(1, len(field) // 16)))


def seconds_of(call, *arguments):
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--size", default="1GB", help="of the values, such as 1GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="dask's, and Tailrace's")
    parser.add_argument("--bound", type=float, default=0.01, help="in K")
    parser.add_argument("--folder", type=pathlib.Path, help="where files are written")
    parser.add_argument("--csv", type=pathlib.Path)
    arguments = parser.parse_args()
    size = float(arguments.size[:-2]) * UNITS[arguments.size[-2:].upper()]

    field = air_temperature(size)
    chunks = (8, min(512, field.shape[1]), min(512, field.shape[2]))
    dataset = xr.Dataset({"t": (("time", "y", "x"), dask.array.from_array(field, chunks))})
    load = os.getloadavg()[0]
    print(f"{field.nbytes / 1e9:.3f} GB, {field.shape}, chunks {chunks}; {arguments.threads} "
          f"threads on {os.cpu_count()} cores, load {load:.1f} at the beginning; Python "
          f"{platform.python_version()}, xarray {xr.__version__}, dask {dask.__version__}, "
          f"netCDF4 {netCDF4.__version__}, h5netcdf {h5netcdf.__version__}, hdf5plugin "
          f"{hdf5plugin.version}, tailrace {tailrace.__version__}", file=sys.stderr)
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder, \
            dask.config.set(scheduler="threads", num_workers=arguments.threads):
        everything = methods(arguments.bound)
        paths = {name: os.path.join(folder, f"{i}.nc") for i, name in enumerate(everything)}
        expected = float(field.mean(dtype="f8"))
        for name, method in everything.items():
            write(dataset, paths[name], method, chunks)
            error = largest_error(paths[name], method, field)
            assert error <= method[3], f"{name}: {error}"
            assert abs(read(paths[name], method) - expected) <= method[3] + 1e-9, name
        times = {name: ([], []) for name in everything}
        for _ in range(arguments.rounds):
            for name, method in everything.items():
                os.remove(paths[name])
                times[name][0].append(seconds_of(write, dataset, paths[name], method, chunks))
            for name, method in everything.items():
                times[name][1].append(seconds_of(read, paths[name], method))
        for name in everything:
            row = {"method": name, "bytes": os.path.getsize(paths[name]),
                   "ratio": field.nbytes / os.path.getsize(paths[name])}
            for what, found in zip(("write", "read"), times[name]):
                row[f"{what}_s"] = statistics.median(found)
                row[f"{what}_least_s"], row[f"{what}_greatest_s"] = min(found), max(found)
            rows.append(row)
    base = rows[0]
    for row in rows:
        for what in ("write", "read"):
            row[f"{what}_times_faster"] = base[f"{what}_s"] / row[f"{what}_s"]
    print("| | ratio | write, s | MB/s | x | read, s | MB/s | x |\n" + 8 * "|---" + "|")
    for row in rows:
        cells = [row["method"], f"{row['ratio']:.2f}"]
        for what in ("write", "read"):
            cells += [f"{row[f'{what}_s']:.2f} ({row[f'{what}_least_s']:.2f} to "
                      f"{row[f'{what}_greatest_s']:.2f})",
                      f"{field.nbytes / 1e6 / row[f'{what}_s']:.0f}",
                      f"{row[f'{what}_times_faster']:.1f}"]
        print("| " + " | ".join(cells) + " |")
    print(f"load {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows([{key: f"{value:.4g}" if isinstance(value, float) else value
                               for key, value in row.items()} for row in rows])


if __name__ == "__main__":
    main()
