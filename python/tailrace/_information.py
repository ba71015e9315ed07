"""bits: the number of mantissa bits that hold most of a field's information.

Source: Klöwer et al. 2021, "Compressing atmospheric data into its real information content",
Nature Computational Science 1, 713-724. The information of a bit is its mutual information with the
same bit of the neighbouring value. Random bits have none. Information that random bits have, too,
with a confidence of 99 %, counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._errors import ArgumentError
from ._measures import (
    Axes,
    Numbers,
    Values,
    as_stored,
    axis_number,
    counted,
    fill_among,
    percent_text,
)
from ._printable import html_text, printable, warn
from ._suggest import (
    SAMPLE_BYTES,
    check_type,
    fields_of,
    fills_of,
    name_of,
    sample_of,
    scan_of,
    unnamed_fill_text,
)

#: Probability with which no bit of random values counts as information.
_CONFIDENCE = 0.99
#: Information of a mantissa bit, as a share of the largest one's, after which more is artificial.
_NEGLIGIBLE = 0.01
#: Share of zeros from which a result names them.
_ZEROS_NAMED = 0.01


class Bits(int):
    """Result of bits(): a number of mantissa bits, with the information of every bit."""

    information: Numbers  #: Bits of information by position: sign, exponent, mantissa.
    share: float  #: Requested share of the information.
    name: str
    dtype: np.dtype[Any]
    axis: int  #: Dimension along which values were compared.
    artificial_from: Optional[int]  #: First mantissa bit, from 0, that does not count; None: none.
    zeros: float  #: Share of the values that are 0, and left out.

    def __new__(cls, number: int, information: Numbers, share: float, name: str,
                dtype: np.dtype[Any], axis: int, artificial_from: Optional[int],
                zeros: float = 0.0) -> Bits:
        made = super().__new__(cls, number)
        made.zeros = zeros
        made.information, made.share, made.name = information, share, name
        made.dtype, made.axis, made.artificial_from = dtype, axis, artificial_from
        return made

    @property
    def pw_rel(self) -> float:
        """Bound that allows the same change of each value: half a unit of the last bit."""
        return 2.0 ** -(int(self) + 1)

    @property
    def encoding(self) -> dict[str, Any]:
        """Keywords of create_variable() and encoding= that round to these bits."""
        return {"significant_digits": max(1, int(self)), "quantize_mode": "BitRound"}

    def __reduce__(self) -> Any:
        return Bits, (int(self), self.information, self.share, self.name, self.dtype, self.axis,
                      self.artificial_from, self.zeros)

    def __repr__(self) -> str:
        at = self.artificial_from
        bits_end = None if at is None else -np.finfo(self.dtype).nmant + at
        total = float(self.information[:bits_end].sum())
        return (f"{int(self)} of {np.finfo(self.dtype).nmant} mantissa bits hold "
                f"{100 * self.share:g} % of the {total:.3g} bits of information of "
                f"{printable(self.name)}; like pw_rel={self.pw_rel:.3g}"
                + (f"; zeros ({percent_text(self.zeros)} %) left out"
                   if self.zeros >= _ZEROS_NAMED else ""))

    def __str__(self) -> str:
        return int.__repr__(self)


class BitTable(dict[str, Bits]):
    """Bits of the variables of a dataset by name."""

    def __init__(self, found: Iterable[tuple[str, Bits]] = (),
                 fills: Optional[dict[str, dict[str, Any]]] = None) -> None:
        super().__init__(found)
        self.fills = fills or {}  #: Fill values of the source's encoding, by variable.

    def encoding(self) -> dict[str, dict[str, Any]]:
        """Return the argument encoding= of to_netcdf() that rounds to these bits, with the source's
        fill values."""
        return {name: {**found.encoding, **self.fills.get(name, {})}
                for name, found in self.items()}

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))

    def _repr_html_(self) -> str:
        return "<br>".join(html_text(repr(found)) for found in self.values())


def bits(data: Any, information: float = 0.99, *, axis: Axes = None, fill_value: Any = None,
         sample_bytes: int = SAMPLE_BYTES) -> Bits:
    """Return the number of mantissa bits that hold this share of a field's information.

    The information of a bit is its mutual information with the same bit of the next value along
    `axis` (Klöwer et al. 2021). Default axis: the last one of several values; of several axes, the
    one with the greatest result counts. Names of dimensions are accepted where the data have them.
    data: float32 or float64, as in suggest_bound(); so are fill_value and sample_bytes. NaN,
    infinities and fill values are left out. So are zeros, which every such rounding keeps: a zero
    next to a zero would look like information down to the last bit. An undeclared fill value
    distorts the result: a RuntimeWarning names it.

    Store the bits by significant_digits=bits(u), quantize_mode="BitRound", or by the bound
    pw_rel=bits(u).pw_rel. The last bits of values that were rounded or packed before follow a
    pattern that looks like information: it does not count, with a RuntimeWarning.
    @error TypeError  integers and other types that are stored exactly.
    @error ArgumentError  a single value, equal values, a wrong axis or share.

    >>> import numpy as np
    >>> u = np.cumsum(np.random.default_rng(0).normal(size=(64, 4096)), axis=1).astype("f4")
    >>> kept = bits(u)
    >>> 0 < kept < 12, kept.pw_rel == 2.0 ** -(kept + 1)
    (True, True)
    """
    if isinstance(data, np.ma.MaskedArray):
        fill_value = data.fill_value if fill_value is None else fill_value
        data = data.filled(fill_value)
    elif not hasattr(data, "shape") or not hasattr(data, "dtype"):
        data = np.asarray(data)
    if isinstance(information, bool) or not isinstance(information, (int, float, np.number)):
        raise TypeError(f"information is {information!r:.60}, must be a number")
    if not 0 < information <= 1:
        raise ArgumentError(f"information is {information!r}, must be > 0 and <= 1")
    with as_stored(data) as attrs:
        name, _ = name_of(data, attrs)
        check_type(name, data)
        fill = fill_among(attrs) if fill_value is None else fill_value
        axes = _axes_of(name, data, axis)
        blocks = list(sample_of(name, data, None, sample_bytes).blocks(data))
    dtype = blocks[0].dtype
    unnamed = scan_of(name, data, fill, blocks).undeclared_fill()
    if unnamed is not None:
        warn(f"{name}: {unnamed_fill_text(unnamed)}")
    found = [_bits_along(name, blocks, one, fill, float(information), dtype) for one in axes]
    chosen = max(found)
    if chosen.artificial_from is not None:
        warn(f"{name}: bits from number {chosen.artificial_from + 1} of the mantissa on follow a "
             "pattern, so the values seem to be packed or rounded already; they do not count")
    return chosen


def bits_of_dataset(dataset: Any, information: float, axis: Axes) -> BitTable:
    """Return bits() of each data variable that bounds apply to."""
    return BitTable(((name, bits(array, information, axis=axis))
                     for name, array in fields_of(dataset)), fills_of(dataset))


def _axes_of(name: str, data: Any, axis: Axes) -> list[int]:
    rank, dims = len(data.shape), [str(dim) for dim in getattr(data, "dims", ())]
    long_axes = [at for at, n in enumerate(data.shape) if n > 1]
    if not long_axes:
        raise ArgumentError(f"{name} is a single value; its bits have no neighbours")
    if axis is None:
        return long_axes[-1:]
    found: list[int] = []
    for one in [axis] if isinstance(axis, (int, str, np.integer)) else axis:
        try:
            found.append(axis_number(one, rank, dims))
        except ValueError as failure:
            raise ArgumentError(f"{name}: {failure}") from None
    if any(data.shape[at] < 2 for at in found):
        raise ArgumentError(f"{name}: axis is {axis!r}, along which there is a single value")
    return found


def _bits_along(name: str, blocks: Sequence[Values], axis: int, fill: Any, share: float,
                dtype: np.dtype[Any]) -> Bits:
    n_bits = 8 * dtype.itemsize
    # Pairs, ones of the first value, ones of the second, ones of both.
    n_pairs, ones = 0, np.zeros((3, n_bits), np.int64)
    known = [counted(block, fill) for block in blocks]
    n_zeros = sum(int((mask & (block == 0)).sum()) for mask, block in zip(known, blocks))
    zeros = n_zeros / max(1, sum(int(mask.sum()) for mask in known))
    equal = True
    for first, second in _pairs(blocks, axis, fill):
        n_pairs += first.size
        equal = equal and bool((first == second).all())
        for row, words in zip(ones, (first, second, first & second)):
            row += [np.count_nonzero(words & (words.dtype.type(1) << words.dtype.type(at)))
                    for at in reversed(range(n_bits))]
    if n_pairs == 0:
        raise ArgumentError(f"{name} has no two neighbours that are numbers "
                            f"{'other than 0 ' if zeros else ''}along axis {axis}")
    if equal:
        raise ArgumentError(f"{name}: neighbours along axis {axis} are equal, so their bits hold "
                            "no information")
    information = mutual_information(ones, n_pairs)
    information[information <= random_information(n_pairs, n_bits)] = 0.0
    mantissa = int(np.finfo(dtype).nmant)
    artificial = _artificial_from(information[-mantissa:], (1 - share) * information.sum())
    end = n_bits if artificial is None else n_bits - mantissa + artificial
    total = np.cumsum(information[:end])
    # Sums in another order differ by rounding.
    last = int(np.argmax(total >= share * total[-1] * (1 - 1e-12))) + 1 if total[-1] else 0
    kept = min(max(0, last - (n_bits - mantissa)), mantissa)
    return Bits(kept, information, share, name, dtype, axis, artificial, zeros)


def _artificial_from(mantissa: Numbers, allowed: float) -> Optional[int]:
    """Return the first bit that holds artificial information: negligible information after the most
    informative bit, and more than `allowed` from there on. None: no such bit.

    >>> _artificial_from(np.array([0.7, 0.2, 0.0, 0.1, 0.2]), 0.05)
    2
    """
    peak = int(np.argmax(mantissa))
    small = np.flatnonzero(mantissa[peak:] < _NEGLIGIBLE * mantissa[peak])
    if small.size == 0 or allowed <= 0 or mantissa[peak + small[0]:].sum() <= allowed:
        return None
    return peak + int(small[0])


def _pairs(blocks: Sequence[Values], axis: int, fill: Any
           ) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Yield the bits of neighbours that are both numbers, and not 0."""
    for block in blocks:
        values = np.moveaxis(block, axis, -1)
        mask = counted(values, fill) & (values != 0)
        known = mask[..., :-1] & mask[..., 1:]
        words = _signed_exponents(np.ascontiguousarray(values))
        yield words[..., :-1][known], words[..., 1:][known]


def _signed_exponents(values: Values) -> npt.NDArray[Any]:
    """Return the bits of floats with the exponent as sign and size. The biased exponent of IEEE
    changes all of its bits between 0.99 and 1.01."""
    info = np.finfo(values.dtype)
    words = values.view(f"u{values.dtype.itemsize}")
    n_mantissa, n_exponent = int(info.nmant), int(info.nexp)
    number = words.dtype.type
    place = number(n_mantissa)
    mask = number((1 << n_exponent) - 1)
    bias = (1 << (n_exponent - 1)) - 1
    exponent = ((words >> place) & mask).astype(np.int64) - bias
    coded = np.abs(exponent) | np.where(exponent < 0, 1 << (n_exponent - 1), 0)
    rest = words & ~(mask << place)
    signed: npt.NDArray[Any] = rest | (coded.astype(words.dtype) << place)
    return signed


def mutual_information(ones: npt.NDArray[np.int64], n_pairs: int) -> Numbers:
    """Return the mutual information of pairs of bits, in bits, from the numbers of pairs whose
    first, second and both bits are 1.

    >>> mutual_information(np.array([[2, 2], [2, 2], [2, 1]]), 4)
    array([1., 0.])
    """
    first, second, both = (row / n_pairs for row in ones)
    found = np.zeros(both.shape)
    for joint, one, other in ((both, first, second), (first - both, first, 1 - second),
                              (second - both, 1 - first, second),
                              (1 - first - second + both, 1 - first, 1 - second)):
        some = joint > 0
        found[some] += joint[some] * np.log2(joint[some] / (one * other)[some])
    information: Numbers = np.maximum(found, 0.0)
    return information


def random_information(n_pairs: int, n_bits: int) -> float:
    """Return the mutual information that all of n_bits random bits stay below with a probability
    of 99 %: 1 - H(p), where p is the upper limit of the frequency of a fair coin in n_pairs throws.

    Source: Klöwer et al. 2021, Methods, equations 7 to 9, which have 99 % for each bit.
    """
    single = 1 - (1 - _CONFIDENCE) / n_bits
    p = min(1.0, 0.5 + NormalDist().inv_cdf((1 + single) / 2) / (2 * math.sqrt(n_pairs)))
    return 1.0 + sum(q * math.log2(q) for q in (p, 1 - p) if q > 0)
