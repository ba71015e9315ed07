#!/usr/bin/env python3
"""Makes a large climate data set out of a small real one: air temperature (time, layer, lat, lon).

    lab/bench/data/make_climate.py climate.nc --size 400MB       source: ../shared/data/climate.h5
    lab/bench/data/make_climate.py climate.nc --refine 4 --steps 64 --source FILE.h5 --field ccm_T

The source has two moments of the atmosphere of NCAR's Community Climate Model: 18 layers on a
Gaussian grid of 64 x 128. The file's attribute `history` says how the data were made; they are
not another run of a model:

- In space, each layer is refined by --refine onto a finer Gaussian grid: band-limited along
  longitude, by cubic polynomials along latitude.
- In time, steps are 3 hours long. The first moment turns into the second and back in 10 days, and
  waves travel eastward by 8 degrees a day. The lowest layers are warmed and cooled by 4 K with the
  position of the sun.
- Refinement lacks variation at the size of a fine cell. The source's variation between
  neighbouring cells replaces it: tiled over the finer grid without stretching, divided by --refine
  (as in a spectrum of k^-3), and moved with the waves. The fields under any two tiles differ, so
  values do not repeat.

Values have full single precision, like the source (trz stores each in 13.6 bits without loss).
--precision rounds them to multiples of a number of kelvins, as archives do that pack their fields.
The output is uncompressed netCDF, classic format with 64-bit data (CDF-5), time unlimited; --raw
also writes the temperatures without the file format, little-endian, for examples/replay. Equal
arguments give equal bytes. Needs numpy, h5py and netCDF4.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import time
import zlib

import h5py
import netCDF4
import numpy as np

from byte_sizes import bytes_of

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOURS_PER_STEP, DAYS_OF_PASSAGE, DEGREES_PER_DAY = 3.0, 10.0, 8.0
DIURNAL_K, DIURNAL_LAYERS = 4.0, 2.0


def gaussian_latitudes(n):
    """Latitudes of a Gaussian grid in degrees north, south first."""
    return np.degrees(np.arcsin(np.polynomial.legendre.leggauss(n)[0]))


def cubic_matrix(coarse, fine):
    """Matrix that interpolates from `coarse` to `fine` positions (both ascending), by the cubic
    through the four nearest; at the ends through the outermost four."""
    matrix = np.zeros((fine.size, coarse.size))
    first = np.clip(np.searchsorted(coarse, fine) - 2, 0, coarse.size - 4)
    for k in range(4):
        weight = np.ones(fine.size)
        for j in range(4):
            if j != k:
                weight *= (fine - coarse[first + j]) / (coarse[first + k] - coarse[first + j])
        matrix[np.arange(fine.size), first + k] = weight
    return matrix


def difference_from_neighbours(field):
    """The field minus its mean over 3 x 3 cells."""
    rows = np.pad(field, [(0, 0)] * (field.ndim - 2) + [(1, 1), (0, 0)], mode="edge")
    rows = (rows[..., :-2, :] + rows[..., 1:-1, :] + rows[..., 2:, :]) / 3
    return field - (np.roll(rows, 1, -1) + rows + np.roll(rows, -1, -1)) / 3


class Atmosphere:
    """The source, prepared so that any step on the finer grid can be computed."""

    def __init__(self, moments, refine):
        moments = np.asarray(moments, "f8")
        _, self.n_layers, n_lat, n_lon = moments.shape
        self.refine = refine
        self.latitudes = gaussian_latitudes(n_lat * refine)
        self.longitudes = np.arange(n_lon * refine) * (360.0 / (n_lon * refine))
        rows = cubic_matrix(gaussian_latitudes(n_lat), self.latitudes)
        self.waves = rows @ np.fft.rfft(moments, axis=-1)  # (2, layer, fine lat, wave)
        detail = difference_from_neighbours(moments[0]) / refine
        # Reflect alternate tiles along latitude, which avoids seams.
        tiles = [detail[:, ::-1] if k % 2 else detail for k in range(refine)]
        self.detail = np.tile(np.concatenate(tiles, axis=1), (1, 1, refine))

    def shape(self):
        return self.n_layers, self.latitudes.size, self.longitudes.size

    def step(self, index, precision):
        """One step (layer, lat, lon), single precision, kelvins."""
        days = index * HOURS_PER_STEP / 24
        share = 0.5 - 0.5 * np.cos(2 * np.pi * days / DAYS_OF_PASSAGE)
        waves = (1 - share) * self.waves[0] + share * self.waves[1]
        n_waves = waves.shape[-1]
        way = np.radians(DEGREES_PER_DAY * days)
        turned = waves * np.exp(-1j * way * np.arange(n_waves))
        turned[..., -1] = turned[..., -1].real  # the shortest wave has no phase
        n_lon = self.longitudes.size
        values = np.fft.irfft(turned, n=n_lon, axis=-1) * self.refine
        values += np.roll(self.detail, round(way / (2 * np.pi) * n_lon), axis=-1)
        layer = np.arange(self.n_layers, dtype="f8")[:, None, None]
        sun = 2 * np.pi * (days % 1)
        values += DIURNAL_K * np.exp((layer - self.n_layers + 1) / DIURNAL_LAYERS) * np.cos(
            np.radians(self.latitudes))[None, :, None] * np.cos(
                np.radians(self.longitudes) + sun)[None, None, :]
        if precision:
            values = np.round(values / precision) * precision
        return values.astype("f4")


def define(file, atmosphere, options):
    file.title = "air temperature, tiled and refined from a small real data set"
    file.source = "two moments of NCAR's Community Climate Model (CCM), 18 layers, 64 x 128 cells"
    file.history = (
        f"made by Tailrace's make_climate.py, not by a model: refined {options.refine} "
        "times in space (band-limited, cubic), cycled in time with travelling waves and a diurnal "
        "cycle; differences between neighbouring cells are the source's, tiled"
        + (f"; rounded to {options.precision:g} K" if options.precision else ""))
    file.Conventions = "CF-1.8"
    n_layers, n_lat, n_lon = atmosphere.shape()
    for name, length in (("time", None), ("layer", n_layers), ("lat", n_lat), ("lon", n_lon)):
        file.createDimension(name, length)
    for name, kind, units, long_name in (
            ("time", "f8", "days since 2000-01-01", "time"),
            ("layer", "i4", "1", "layer of the model, the top first"),
            ("lat", "f8", "degrees_north", "latitude"), ("lon", "f8", "degrees_east", "longitude")):
        variable = file.createVariable(name, kind, (name,), fill_value=False)
        variable.units, variable.long_name = units, long_name
    temperature = file.createVariable("temperature", "f4", ("time", "layer", "lat", "lon"),
                                      fill_value=False)
    temperature.units, temperature.long_name = "K", "air temperature"
    temperature.standard_name = "air_temperature"
    file["layer"][:] = np.arange(n_layers)
    file["lat"][:], file["lon"][:] = atmosphere.latitudes, atmosphere.longitudes
    return temperature


def make(options):
    """Write the file. @returns the summary's numbers."""
    start_s = time.monotonic()
    with h5py.File(options.source) as source:
        atmosphere = Atmosphere(source[options.field][:2], options.refine)
    step_bytes = 4 * int(np.prod(atmosphere.shape()))
    n_steps = options.steps or max(round(options.size / step_bytes), 1)
    checksum = 0
    raw = open(options.raw, "wb") if options.raw else contextlib.nullcontext()
    with raw, netCDF4.Dataset(options.path, "w", format=options.format) as file:
        file.set_fill_off()
        temperature = define(file, atmosphere, options)
        for index in range(n_steps):
            values = atmosphere.step(index, options.precision)
            temperature[index] = values
            file["time"][index] = index * HOURS_PER_STEP / 24
            if options.raw:
                raw.write(values.astype("<f4").tobytes())
            checksum = zlib.crc32(values, checksum)
    return {"file": pathlib.Path(options.path).name, "steps": n_steps,
            "layers": atmosphere.shape()[0], "lat": atmosphere.shape()[1],
            "lon": atmosphere.shape()[2], "refine": options.refine,
            "precision": options.precision, "raw_bytes": n_steps * step_bytes,
            "values_crc32": f"{checksum:08x}", "seconds": time.monotonic() - start_s}


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="of the file to be made")
    parser.add_argument("--source", default=ROOT.parent / "shared" / "data" / "climate.h5",
                        help="an HDF5 file with the two moments")
    parser.add_argument("--field", default="ccm_T", help="its dataset (time, layer, lat, lon)")
    parser.add_argument("--size", type=bytes_of, default=400e6, help="of all temperatures, bytes")
    parser.add_argument("--steps", type=int, help="of 3 hours, in place of --size")
    parser.add_argument("--refine", type=int, default=3, help="fine cells per cell and direction")
    parser.add_argument("--precision", type=float, default=0.0,
                        help="kelvins that values are rounded to; 0: not")
    parser.add_argument("--format", default="NETCDF3_64BIT_DATA",
                        choices=["NETCDF3_64BIT_DATA", "NETCDF3_64BIT_OFFSET", "NETCDF4"])
    parser.add_argument("--raw", metavar="FILE", help="the temperatures alone, too")
    parser.add_argument("--json", metavar="FILE", help="the summary's numbers")
    options = parser.parse_args(arguments)
    if options.refine < 1 or options.size <= 0 or options.precision < 0:
        parser.error("--refine must be at least 1, --size above 0, --precision 0 or more")
    if options.steps is not None and options.steps < 1:
        parser.error("--steps must be at least 1")
    if not pathlib.Path(options.source).exists():
        parser.error(f"{options.source} is not there; --source names another")
    return options


def main():
    options = parse()
    numbers = make(options)
    print(f"{numbers['file']}: {numbers['steps']} steps of {numbers['layers']} layers of "
          f"{numbers['lat']} x {numbers['lon']} cells, {numbers['raw_bytes'] / 1e6:.1f} MB, values "
          f"{numbers['values_crc32']}, {numbers['seconds']:.1f} s", file=sys.stderr)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
