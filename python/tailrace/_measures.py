"""Effects of an error on a field: the sums that suggest_bound() and report() share.

Effects adds up originals and decoded values block by block, so that it needs the memory of one
block. It computes moments, largest and mean square error, finite differences and radial power
spectra. NaN, infinities and fill values are excluded. A difference counts if both of its values do.
In a spectrum the mean of a map replaces its excluded values. Numbers that decoding made NaN or
infinite are counted as lost, and then excluded, too. Axes, windows and rings of spectra are those
of `verify --report` (src/verbs/fidelity.cpp), so that both report the same ratios of power.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
Numbers = npt.NDArray[np.float64]

#: Default number of last dimensions longer than 1 along which spectra and differences run: a map.
_MAP_RANK = 2
#: Values of a piece of a line; lines are measured in pieces.
_PIECE_VALUES = 4096
_RINGS_MAX = 256
#: A shell of wave numbers is kept if its power changes by at most this share.
SHELL_CHANGE_MAX = 0.05


def counted(values: Values, fill: Any = None) -> npt.NDArray[np.bool_]:
    """Mark the values whose errors are measured: finite and not fill.

    >>> counted(np.array([1, np.nan, -9]), -9).tolist()
    [True, False, False]
    """
    mask: npt.NDArray[np.bool_] = np.isfinite(values)
    if fill is not None:
        with np.errstate(all="ignore"):
            mask &= values != np.asarray(fill).astype(values.dtype)
    return mask


def fill_among(attrs: Any) -> Any:
    """Return the fill value that a variable's attributes name; None for none.

    >>> fill_among({"missing_value": -9.0, "units": "K"})
    -9.0
    """
    if not hasattr(attrs, "get"):
        return None
    for name in ("tailrace_fill_value", "_FillValue", "missing_value"):
        found = attrs.get(name)
        if found is not None and np.ndim(found) == 0 and np.asarray(found).dtype.kind in "fiu":
            return found
        if np.size(found) == 1 and np.ndim(found) == 1:
            return np.asarray(found)[0]  # h5py returns an array.
    return None


@contextlib.contextmanager
def as_stored(data: Any) -> Iterator[Any]:
    """Return the attributes of an array of any package. A netCDF4 variable meanwhile returns values
    as stored, neither masked nor scaled."""
    if not hasattr(data, "set_auto_maskandscale"):
        yield getattr(data, "attrs", {})
        return
    masked, scaled = data.mask, data.scale
    data.set_auto_maskandscale(False)
    try:
        yield {name: data.getncattr(name) for name in data.ncattrs()}
    finally:
        data.set_auto_mask(masked)
        data.set_auto_scale(scaled)


#: Dimensions by number or by name.
Axes = Union[None, int, str, Sequence[Union[int, str]]]


def axis_number(axis: Any, rank: int, dims: Sequence[str]) -> int:
    """Return the number of a dimension, given by its number or its name.

    >>> axis_number(-1, 3, ()), axis_number("lat", 3, ("time", "lat", "lon"))
    (2, 1)
    """
    at = dims.index(axis) if isinstance(axis, str) and axis in dims else axis
    if isinstance(at, (str, bool)) or not isinstance(at, (int, np.integer)) or not (
            -rank <= at < rank):
        known = f"0 to {rank - 1}" + (f", or one of {', '.join(dims)}" if dims else "")
        raise ValueError(f"axis is {axis!r}, must be {known}")
    return int(at) % rank


def space_axes(shape: Sequence[int], axes: Axes = None, dims: Sequence[str] = ()
               ) -> tuple[int, ...]:
    """Return the dimensions along which gradients and spectra run, from 0; by default the last two
    that are longer than 1, like the maps of `verify --report`.

    >>> space_axes((9, 8, 1, 7)), space_axes((9, 8, 7), [-1]), space_axes((2, 2), "y", ("z", "y"))
    ((1, 3), (2,), (1,))
    """
    rank = len(shape)
    if axes is None:
        long_axes = [at for at, n in enumerate(shape) if n > 1]
        return tuple(long_axes[-_MAP_RANK:]) or tuple(range(rank))[-1:]
    axes = (axes,) if isinstance(axes, (int, str, np.integer)) else axes
    found = sorted({axis_number(axis, rank, dims) for axis in axes})
    if not found or len(found) != len(axes) or found[0] < 0 or found[-1] >= rank:
        raise ValueError(f"axes are {tuple(axes)!r}, must be different dimensions of {rank}")
    return tuple(found)


def axes_text(axes: Sequence[int], dims: Sequence[str]) -> str:
    """
    >>> axes_text((1, 2), ("time", "lat", "lon")), axes_text((0,), ())
    ('lat, lon', 'dimension 0')
    """
    if len(dims) > max(axes, default=0) and not any(name.startswith("phony_dim_") for name in dims):
        return ", ".join(dims[axis] for axis in axes)
    return f"dimension{'s' * (len(axes) > 1)} {', '.join(map(str, axes))}"


class Shells:
    """Wave numbers of a box of values, sorted into n rings around 0.

    wave_numbers: the middle k / (2 n) of each ring, in cycles per grid spacing; n is half of the
    shortest extent, and at most 256. A Hann window along each axis removes the jump between
    opposite edges from the spectrum.
    """

    def __init__(self, extents: Sequence[int]) -> None:
        if sum(n > 1 for n in extents) == 1:
            extents = [min(n, _PIECE_VALUES) for n in extents]
        self.extents = tuple(extents)
        self._axes = [at for at, n in enumerate(extents) if n > 1]
        lengths = [extents[at] for at in self._axes]
        self.n = min(_RINGS_MAX, min(lengths, default=1) // 2)
        self.wave_numbers: Numbers = np.arange(1, self.n + 1) / max(1, 2 * self.n)
        self._window: Any = np.ones(tuple(1 for _ in extents))
        square: Any = np.zeros(tuple(1 for _ in extents))
        for at, n in zip(self._axes, lengths):
            along = [1] * len(extents)
            along[at] = -1
            halved = at == self._axes[-1]
            k = np.fft.rfftfreq(n) if halved else np.fft.fftfreq(n)
            square = square + (k**2).reshape(along)
            self._window = self._window * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)
                                           ).reshape(along)
        self._shell = np.floor(2 * self.n * np.sqrt(square) + 0.5).astype(np.int32).ravel()
        # A real field's spectrum is symmetric: all planes count twice, except those at 0 and at the
        # end.
        self._twice: Any = 1.0
        if self._axes:
            n = lengths[-1]
            twice = np.full(n // 2 + 1, 2.0)
            twice[0] = 1
            if n % 2 == 0:
                twice[-1] = 1
            along = [1] * len(extents)
            along[self._axes[-1]] = -1
            self._twice = twice.reshape(along)

    def power(self, values: Numbers) -> Numbers:
        """Return the power of each ring: squares of the transform over the square of the number of
        values."""
        if not self._axes:
            return np.zeros(0)
        waves = np.fft.rfftn(values * self._window, axes=self._axes)
        density = (waves.real**2 + waves.imag**2) * self._twice
        sums = np.bincount(self._shell, weights=density.ravel(), minlength=self.n + 1)
        return np.asarray(sums[1:self.n + 1], np.float64) / values.size**2


def maps_of(shells: Shells, values: Values, axes: Sequence[int]) -> Values:
    """Return the maps of a block, or the complete pieces of its lines, along a new first axis."""
    first = [axis for axis in range(values.ndim) if axis not in axes]
    box = tuple(values.shape[axis] for axis in axes)
    maps = values.transpose([*first, *axes]).reshape((-1, *box))
    if box == shells.extents:
        return maps
    piece = math.prod(shells.extents)
    lines = maps.reshape(len(maps), -1)
    whole = lines[:, :lines.shape[1] // piece * piece]
    return whole.reshape((-1, *shells.extents))


def power_of(shells: Shells, values: Numbers, mask: npt.NDArray[np.bool_], axes: Sequence[int]
             ) -> tuple[Numbers, int]:
    """Return the power of the rings, added up over a block's maps, and the number of maps that have
    values."""
    total, n_maps = np.zeros(shells.n), 0
    for one, known in zip(maps_of(shells, values, axes), maps_of(shells, mask, axes)):
        if known.any():
            total += shells.power(np.where(known, one - one[known].mean(), 0.0))
            n_maps += 1
    return total, n_maps


def kept_share(original: Numbers, power: Numbers) -> float:
    """Return the share of the wave numbers up to which all shells keep their power within
    SHELL_CHANGE_MAX.

    >>> kept_share(np.array([4., 2, 1, 1]), np.array([4., 2.01, 1.5, 1]))
    0.5
    """
    if original.size == 0:
        return 1.0
    off = np.abs(power - original) > SHELL_CHANGE_MAX * original
    return float(np.argmax(off)) / original.size if off.any() else 1.0


class Effects:
    """Adds up the changes by decoding, from blocks given to add(); spectra need equal block
    shapes."""

    def __init__(self, axes: Sequence[int], fill: Any = None,
                 shells: Optional[Shells] = None, bound: float = 0.0) -> None:
        self._axes = axes
        self._bound = bound
        self._n_below = np.zeros(2, np.int64)  # Number of values below the bound, and of nonzero
                                               # values.
        self._fill = fill
        self._shells = shells
        self._centre: Optional[float] = None
        self._exponent = 0  # Values are scaled by 2**-exponent, so that squares are finite.
        self.n = 0  #: Number of compared values.
        self.n_lost = 0  #: Numbers that decoding made NaN or infinite.
        self._sums = np.zeros(4)  # Values, then squares, of both sides, about the centre.
        self.max_error = 0.0
        self._square_error = 0.0
        self._least, self._greatest = math.inf, -math.inf
        self._gradient = np.zeros(2)  # Squares of differences, and of their errors.
        n_shells = shells.n if shells is not None else 0
        self._powers, self._n_maps = np.zeros((2, n_shells)), 0

    def add(self, original: Values, decoded: Values) -> None:
        mask = counted(original, self._fill)
        kept = np.isfinite(decoded)
        lost = int((mask & ~kept).sum())
        mask &= kept
        self.n_lost += lost
        if lost:
            self.max_error = math.inf
        if not mask.any():
            return
        if self._centre is None:
            self._exponent = _extreme_exponent(float(np.abs(original[mask]).max()))
        first = _scaled(original, self._exponent, mask)
        second = _scaled(decoded, self._exponent, mask)
        values, others = first[mask], second[mask]
        block_mean = float(values.mean())
        if self._centre is None:
            self._centre = block_mean
        self.n += values.size
        sizes = np.abs(values)
        bound = math.ldexp(self._bound, -self._exponent) if self._exponent else self._bound
        self._n_below += [np.count_nonzero((sizes < bound) & (sizes > 0)),
                          np.count_nonzero(sizes)]
        error = np.abs(others - values)
        self.max_error = max(self.max_error, self._unscaled(float(error.max())))
        self._square_error += float(np.square(error).sum())
        self._least = min(self._least, float(values.min()))
        self._greatest = max(self._greatest, float(values.max()))
        values -= self._centre
        others -= self._centre
        self._sums += [values.sum(), others.sum(), np.square(values).sum(),
                       np.square(others).sum()]
        for axis in self._axes:
            if original.shape[axis] < 2:
                continue
            ends = [tuple(part if at == axis else slice(None) for at in range(original.ndim))
                    for part in (slice(1, None), slice(None, -1))]
            known = mask[ends[0]] & mask[ends[1]]
            slope = (first[ends[0]] - first[ends[1]])[known]
            other = (second[ends[0]] - second[ends[1]])[known]
            self._gradient += [np.square(slope).sum(), np.square(other - slope).sum()]
        if self._shells is not None:
            for row, side in zip(self._powers, (first, second)):
                power, n_maps = power_of(self._shells, side, mask, self._axes)
                row += power
            self._n_maps += n_maps

    def power_of_errors(self, original: Values, decoded: Values) -> Numbers:
        """Return the power of a block's errors, the mean over its maps."""
        if self._shells is None:
            return np.zeros(0)
        mask = counted(original, self._fill) & np.isfinite(decoded)
        errors = (_scaled(decoded, self._exponent, mask)
                  - _scaled(original, self._exponent, mask))
        power, n_maps = power_of(self._shells, errors, mask, self._axes)
        return power / max(1, n_maps)

    def _unscaled(self, value: float) -> float:
        try:
            return math.ldexp(value, self._exponent) if self._exponent else value
        except OverflowError:
            return math.copysign(math.inf, value)

    # --- results ----------------------------------------------------------------------------------

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest original value; (0, 0) without a value."""
        if not self.n:
            return 0.0, 0.0
        return self._unscaled(self._least), self._unscaled(self._greatest)

    @property
    def mean(self) -> float:
        return self._unscaled(float((self._centre or 0.0) + self._sums[0] / max(self.n, 1)))

    @property
    def mean_change(self) -> float:
        """Mean of the decoded values minus that of the originals, in their unit."""
        return self._unscaled(float(self._sums[1] - self._sums[0]) / max(self.n, 1))

    def _deviation(self, side: int) -> float:
        n = max(self.n, 1)
        return math.sqrt(max(0.0, self._sums[2 + side] / n - (self._sums[side] / n) ** 2))

    @property
    def std(self) -> float:
        """Standard deviation of the original."""
        return self._unscaled(self._deviation(0))

    @property
    def mean_shift(self) -> float:
        """mean_change in standard deviations."""
        n = max(self.n, 1)
        return share(float(self._sums[1] - self._sums[0]) / n, self._deviation(0))

    @property
    def std_change(self) -> float:
        """Change of the standard deviation as a share of the original's."""
        return share(self._deviation(1) - self._deviation(0), self._deviation(0))

    @property
    def gradient_error(self) -> float:
        """Root mean square of the errors of differences of neighbours, as a share of the
        differences."""
        return share(math.sqrt(self._gradient[1]), math.sqrt(self._gradient[0]))

    @property
    def below(self) -> float:
        """Share of the nonzero values that are smaller than the absolute bound."""
        return float(self._n_below[0] / max(self._n_below[1], 1))

    @property
    def psnr_db(self) -> Optional[float]:
        """Peak signal to noise ratio in dB; None: exactly equal, or without a range."""
        least, greatest = self._least, self._greatest
        if self._square_error == 0 or greatest <= least or not math.isfinite(self._square_error):
            return None
        return 20 * math.log10((greatest - least) / math.sqrt(self._square_error / self.n))

    @property
    def power(self) -> Numbers:
        """Power of the original in each ring, the mean over all maps."""
        return self._powers[0] / max(1, self._n_maps)

    @property
    def power_decoded(self) -> Numbers:
        return self._powers[1] / max(1, self._n_maps)

    @property
    def spectrum_kept(self) -> float:
        """Share of the wave numbers up to which power is within 5 % of the original's."""
        return kept_share(self.power, self.power_decoded)


def ratio_text(ratio: float) -> str:
    """
    >>> ratio_text(3.14159), ratio_text(123456.7)
    ('3.142', '123457')
    """
    return f"{ratio:.4g}" if ratio < 1e4 else f"{ratio:.0f}"


def _extreme_exponent(largest: float) -> int:
    """Return the power of 2 by which values are divided to make their squares finite and not 0. It
    is 0 except for extreme values."""
    if largest == 0 or 1e-100 < largest < 1e100:
        return 0
    return math.frexp(largest)[1]


def _scaled(values: Values, exponent: int, mask: npt.NDArray[np.bool_]) -> Numbers:
    """Convert to double precision, times 2**-exponent; 0 where the mask is False."""
    found: Numbers = values.astype(np.float64)
    if exponent:
        # Scale in two steps, since 2**1074 is not a number.
        found = np.ldexp(np.ldexp(np.where(mask, found, 0.0), -exponent // 2),
                         -exponent - -exponent // 2)
    else:
        found[~mask] = 0.0
    return found


def share(part: float, whole: float) -> float:
    """Return part / whole; 0 / 0 is 0, and any other number over 0 is infinite.

    >>> share(1, 4), share(0, 0), share(-1, 0)
    (0.25, 0.0, -inf)
    """
    if whole:
        return float(part / whole)
    return math.copysign(math.inf, part) if part else 0.0


# --- numbers as text ------------------------------------------------------------------------------


def bytes_text(n_bytes: float) -> str:
    """
    >>> bytes_text(999), bytes_text(12345), bytes_text(3.2e9)
    ('999 B', '12.3 kB', '3.2 GB')
    """
    if n_bytes < 1000:
        return f"{int(n_bytes)} B"
    for unit, factor in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if n_bytes < 999.95 * factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes / 1e12:.1f} TB"


def percent_text(value: float, *, sign: bool = False) -> str:
    """A share in percent, with two digits.

    >>> percent_text(0.01234), percent_text(-2e-9, sign=True), percent_text(0.5)
    ('1.2', '-2e-07', '50')
    """
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "NaN"
    number = float(f"{100 * value:.2g}")
    text = f"{number:.0f}" if 10 <= abs(number) < 1e5 else f"{number:.2g}"
    return f"{'+' if sign and number > 0 else ''}{text}"


def shape_text(shape: Sequence[int]) -> str:
    """
    >>> shape_text((8, 40)), shape_text(())
    ('8x40', 'scalar')
    """
    return "x".join(map(str, shape)) or "scalar"
