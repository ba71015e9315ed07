"""Guards judged by an independent checker, compression-safeguards.

It ensures such properties for any codec, and evaluates quantities with its own interpreter. The
tests use real data. Values written without a guard must violate it, which shows that the checker
works. Values written with the guard must not. `sum` has no counterpart, because it is about whole
chunks.
"""

import warnings

import h5py
import numpy as np
import pytest

from cli_tools import REAL_DATA, data_file, datasets, tailrace

pytestmark = pytest.mark.full

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    safeguards = pytest.importorskip("compression_safeguards")

if not REAL_DATA.exists():
    pytest.skip("the real data are not there", allow_module_level=True)

VELOCITY = ("nyx64_s140.h5", "native_fields/velocity_x")
DENSITY = ("nyx64_s140.h5", "native_fields/baryon_density")
DARK = ("nyx64_s140.h5", "native_fields/dark_matter_density")
TEMPERATURE = ("nyx64_s140.h5", "native_fields/temperature")
HEIGHTS = ("climate.h5", "hgt_21")
AIR = ("climate.h5", "ccm_T")


def neighbours(*axes, before=0, after=1):
    return [{"axis": axis, "before": before, "after": after, "boundary": "valid"} for axis in axes]


def quantity(expression, bound, **more):
    return {"kind": "qoi_eb_pw", "qoi": expression, "type": "abs", "eb": bound,
            "qoi_dtype": "float128", **more}


def stencil(expression, bound, axes, before=0, after=1):
    # f64 suffices for sums of a few f32 values, and needs a tenth of the time.
    return {**quantity(expression, bound), "kind": "qoi_eb_stencil", "qoi_dtype": "float64",
            "neighbourhood": neighbours(*axes, before=before, after=after)}


def same_order(axis):
    """Rising pairs must keep rising or become level; falling pairs likewise."""
    x0, x1 = 'C["$X"][0]', 'C["$X"][1]'
    kept = f"all([any([{x1} < {x0}, X[1] >= X[0]]), any([{x1} > {x0}, X[1] <= X[0]])])"
    return stencil(kept, 0, [axis])


def spread(x):
    finite = x[np.isfinite(x)]
    return float(finite.max()) - float(finite.min())


SECOND_DIFFERENCES = ("X[I[0]-1,I[1],I[2]] + X[I[0]+1,I[1],I[2]] + X[I[0],I[1]-1,I[2]]"
                      " + X[I[0],I[1]+1,I[2]] + X[I[0],I[1],I[2]-1] + X[I[0],I[1],I[2]+1] - 6 * x")

# Cases, by guard: the data, the guard's text, and the checker's conditions for an original.
CASES = {
    "sign": (VELOCITY, "sign", lambda x: [{"kind": "sign"}]),
    "zero": (DARK, "zero", lambda x: [{"kind": "same", "value": 0}]),
    "threshold": (TEMPERATURE, "threshold=5000.5", lambda x: [{"kind": "sign", "offset": 5000.5}]),
    "minmax": (VELOCITY, "minmax", lambda x: [{"kind": "sign", "offset": float(x.min())},
                                              {"kind": "sign", "offset": float(x.max())}]),
    "log": (DENSITY, "log=0.01", lambda x: [quantity("ln(x)", 0.01)]),
    "power=2": (VELOCITY, "power=2:100", lambda x: [quantity("x ** 2", 100)]),
    "power=0.5": (DENSITY, "power=0.5:1000", lambda x: [quantity("sqrt(x)", 1000)]),
    "gradient": (AIR, "gradient=0.5",
                 lambda x: [stencil("X[1] - X[0]", 0.5, [axis]) for axis in range(x.ndim)]),
    "laplacian": (VELOCITY, "laplacian=10",
                  lambda x: [stencil(SECOND_DIFFERENCES, 10, [0, 1, 2], before=1)]),
    "monotone": (AIR, "monotone=1", lambda x: [same_order(1)]),
    "region": (HEIGHTS, "region=2..9x*x10..60:0.25",
               lambda x: [{"kind": "eb", "type": "abs", "eb": "allowed"}]),
}


def decoded(target):
    """Decode a file with Tailrace's own reader, because h5py lacks the plug-in of trz here."""
    plain = target.with_suffix(".plain.h5")
    tailrace("repack", target, "-o", plain, "--codec", "none", "--force")
    return datasets(plain)


@pytest.mark.parametrize(("name", "preset"), [(name, "default") for name in CASES]
                         + [(name, "max") for name in ("sign", "minmax", "gradient", "monotone")])
def test_a_checker_of_others_finds_them_kept(tmp_path, name, preset):
    (file, path), guard, asked = CASES[name]
    with h5py.File(data_file(file, tmp_path)) as opened:
        x = opened[path][()]
    source = tmp_path / "in.h5"
    with h5py.File(source, "w") as made:
        made["x"] = x
    options = ["--codec", f"trz,preset={preset}", "--bound", "rel=0.01", "--chunk", "64KiB"]
    tailrace("repack", source, "-o", tmp_path / "free.h5", *options)
    tailrace("repack", source, "-o", tmp_path / "kept.h5", *options, "--guard", guard, ranks=2)
    allowed = np.full(x.shape, 0.01 * spread(x))
    allowed[2:9, ..., 10:60] = 0.25
    late = {"allowed": allowed} if name == "region" else {}
    checker = safeguards.Safeguards(safeguards=asked(x))
    bound = {"kind": "eb", "type": "abs", "eb": 0.01 * spread(x), "equal_nan": True}
    kept, free = decoded(tmp_path / "kept.h5")["x"], decoded(tmp_path / "free.h5")["x"]
    assert safeguards.Safeguards(safeguards=[bound]).check(x, kept)
    assert not checker.check(x, free, late_bound=late), "the data put the guard to no test"
    assert checker.check(x, kept, late_bound=late)
