"""The data sets of lab/bench/papers/compare_sz3.py: real fields of shared/data, and synthetic ones.

Real sets are read from REAL_DATA, whose MANIFEST.md gives their origin. Synthetic sets are
generated from a seed; their file column says "synthetic". Each set is one chunk of 1 to 10 MB.
A few real fields of f32 are also used as f64, with "(widened)" in their name.
"""

import dataclasses
import pathlib

import h5py
import numpy as np

REAL_DATA = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data"
#: climate.h5 does not declare its fill values.
FILLS = {"levitus_salt": -1e10, "levitus_temp": -1e10, "coads": -1e34}
REAL_FILES = ("nyx128_s040", "nyx64_s060", "nyx64_s140", "nyx64_steps090_099",
              "nyx64_particles_s090", "lammps_lj_early", "climate")
LEAST_VALUES = 1000


@dataclasses.dataclass
class DataSet:
    file: str  # "synthetic" for generated sets.
    field: str
    values: np.ndarray
    fill: float | None = None

    @property
    def hard(self):
        """True for particles: nothing predicts their positions and momenta."""
        return "particles" in self.file or "lammps" in self.file or "vpic" in self.field

    @property
    def masked(self):
        return self.fill is not None or not np.isfinite(self.values).all()

    @property
    def kept(self):
        """Mask of the values to which the bound applies."""
        ok = np.isfinite(self.values)
        return ok if self.fill is None else ok & (self.values != self.values.dtype.type(self.fill))


def fill_of(name, file):
    if file != "climate" or name.endswith("_nan"):
        return None
    return next((fill for prefix, fill in FILLS.items() if name.startswith(prefix)), None)


def real_sets():
    for file in REAL_FILES:
        path = REAL_DATA / f"{file}.h5"
        if not path.exists():
            continue
        names = []
        with h5py.File(path) as opened:
            opened.visititems(lambda name, found: names.append(name)
                              if isinstance(found, h5py.Dataset) and found.dtype.kind == "f"
                              and found.size > LEAST_VALUES else None)
            for name in names:
                values = np.ascontiguousarray(opened[name][...])
                yield DataSet(path.name, "/" + name, values, fill_of(name, file))
                if file in ("nyx64_s140", "climate"):
                    yield DataSet(path.name, f"/{name} (widened)", values.astype("f8"),
                                  fill_of(name, file))


def spectrum(k):
    """Cold-dark-matter power spectrum of Bardeen et al. 1986, k in h/Mpc."""
    q = k / 0.2
    transfer = np.log1p(2.34 * q) / (2.34 * q) * (
        1 + 3.89 * q + (16.1 * q) ** 2 + (5.46 * q) ** 3 + (6.71 * q) ** 4) ** -0.25
    return k * transfer**2


def synthetic_nyx(generator, n=256, length=64.0, crop=128):
    """Log-normal densities, a temperature tied to them, linear velocities; a corner of a box."""
    full = 2 * np.pi * np.fft.fftfreq(n, d=length / n)
    half = 2 * np.pi * np.fft.rfftfreq(n, d=length / n)
    axes = np.meshgrid(full, full, half, indexing="ij", sparse=True)
    k = np.sqrt(sum(axis**2 for axis in axes))
    k[0, 0, 0] = 1
    power = spectrum(k)
    power[0, 0, 0] = 0
    waves = np.fft.rfftn(generator.standard_normal((n, n, n)))
    waves *= np.sqrt(power) * np.exp(-(0.12 * k) ** 2)
    delta = np.fft.irfftn(waves, s=(n, n, n))
    delta /= delta.std()
    speeds = [np.fft.irfftn(1j * axis / k**2 * waves, s=(n, n, n)) for axis in axes]
    fastest = max(np.abs(speed).max() for speed in speeds)
    corner = np.s_[:crop, :crop, :crop]
    baryons = np.exp(1.8 * delta)
    baryons /= baryons.mean()
    matter = np.exp(2.0 * delta)
    yield "baryon_density", baryons[corner]
    yield "dark_matter_density", generator.poisson((4 * matter / matter.mean())[corner])
    yield "temperature", (1e3 + 1e4 * baryons**0.9 * np.exp(0.3 * np.roll(delta, 3, 0)))[corner]
    for name, speed in zip("xyz", speeds):
        yield f"velocity_{name}", (speed / fastest * 1.5e8)[corner]


def synthetic_sets(seed=7):
    generator = np.random.default_rng(seed)
    for name, values in synthetic_nyx(generator):
        yield DataSet("synthetic", "nyx_" + name, np.ascontiguousarray(values, "f4"))
        if name in ("baryon_density", "temperature", "velocity_x"):
            yield DataSet("synthetic", "nyx_" + name, np.ascontiguousarray(values[:64], "f8"))
    n = 1 << 21
    yield DataSet("synthetic", "vpic_x", np.sort(64 * generator.random(n)).astype("f4"))
    yield DataSet("synthetic", "vpic_ux", generator.standard_normal(n).astype("f4"))
    shape = (1200, 1800)
    k = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None])
    k[0, 0] = 1
    waves = np.fft.rfft2(generator.standard_normal(shape)) * k**-1.6
    yield DataSet("synthetic", "cesm_like", np.fft.irfft2(waves, s=shape).astype("f4"))


def all_sets():
    yield from real_sets()
    yield from synthetic_sets()
