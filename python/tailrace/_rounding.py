"""Rounding of mantissas as in the netCDF-C library: significant_digits= with quantize_mode=.

The values lose bits before a lossless codec stores them. An attribute of netCDF records the number
of digits or bits, and Tailrace's own attributes the loss. NaN, infinities, fill values, and numbers
too small for a complete mantissa stay exact.

Source of the algorithms: Zender 2016 (BitGroom), Delaunay et al. 2019 (Granular BitRound),
Kouznetsov 2021 (BitRound). The results equal those of netCDF-C 4.10, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._errors import ArgumentError

Values = npt.NDArray[Any]

#: Attributes of netCDF-C by mode.
ATTRIBUTES = {"BitGroom": "_QuantizeBitGroomNumberOfSignificantDigits",
              "GranularBitRound": "_QuantizeGranularBitRoundNumberOfSignificantDigits",
              "BitRound": "_QuantizeBitRoundNumberOfSignificantBits"}
#: Default fill values of netCDF; the same number in both types.
_FILL = np.float32(9.969209968386869e36)
#: Quotients like in netCDF-C: the digits of powers of ten depend on the last bit.
_BITS_PER_DIGIT = math.log(10) / math.log(2)
_DIGITS_PER_BIT = math.log(2) / math.log(10)


@dataclass(frozen=True)
class Rounding:
    """A request to round: its mode and number of decimal digits, of bits for BitRound."""

    mode: str
    number: int
    dtype: np.dtype[Any]
    earlier: str = ""  #: Losses that the values already have; "": none.

    @property
    def attribute(self) -> tuple[str, np.int32]:
        return ATTRIBUTES[self.mode], np.int32(self.number)

    @property
    def loss(self) -> str:
        """Largest relative change of a value, in the syntax of the option earlier-loss."""
        if self.mode == "BitRound":
            bound = 2.0 ** -(self.number + 1)
        elif self.mode == "BitGroom":
            bound = 2.0 ** -_kept_bits(self.number)
        else:
            bound = 0.5 * 10.0 ** (1 - self.number)
        return f"pw_rel={bound!r}"

    @property
    def losses(self) -> str:
        return f"{self.earlier} then {self.loss}" if self.earlier else self.loss

    def apply(self, values: Values, fill: Any, odd: npt.NDArray[np.bool_]) -> Values:
        """Return rounded values. fill: a value that stays exact; None: netCDF's default. odd: True
        where the position in the variable is an odd number, for BitGroom."""
        info = np.finfo(values.dtype)
        exact = ~np.isfinite(values) | (np.abs(values) < info.smallest_normal)
        exact |= values == np.asarray(_FILL if fill is None else fill).astype(values.dtype)
        words = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
        n_mantissa = int(info.nmant)
        if self.mode == "BitGroom":
            lost = n_mantissa - _kept_bits(self.number)
            if lost <= 0:
                return values
            ones = words.dtype.type((1 << lost) - 1)
            rounded = np.where(odd, words | ones, words & ~ones)
        else:
            kept = (self.number if self.mode == "BitRound"
                    else _granular_bits(np.where(exact, 1.0, values), self.number))
            lost_bits = np.clip(n_mantissa - np.asarray(kept, np.int64), 0, n_mantissa)
            ones = ((1 << lost_bits.astype(np.uint64)) - np.uint64(1)).astype(words.dtype)
            half = ones ^ (ones >> words.dtype.type(1))
            rounded = (words + half) & ~ones
        found: Values = rounded.astype(words.dtype).view(values.dtype)
        return np.where(exact | ~np.isfinite(found), values, found)


def _kept_bits(digits: int) -> int:
    """Number of mantissa bits that BitGroom keeps."""
    return math.ceil(digits * _BITS_PER_DIGIT) + 1


def _granular_bits(values: Values, digits: int) -> npt.NDArray[np.int64]:
    """Number of mantissa bits of each value that Granular BitRound keeps."""
    mantissa, exponent = np.frexp(values.astype("f8"))
    logarithm = np.log10(np.abs(mantissa))
    n_digits = np.floor(exponent * _DIGITS_PER_BIT + logarithm).astype(np.int64) + 1
    power = np.floor(_BITS_PER_DIGIT * (n_digits - digits)).astype(np.int64)
    needed = np.floor(exponent - _BITS_PER_DIGIT * logarithm).astype(np.int64)
    kept: npt.NDArray[np.int64] = np.abs(needed - power) - 1
    return kept


def rounding_of(where: str, keys: Mapping[str, Any], dtype: Any) -> Optional[Rounding]:
    """Return the request in significant_digits= and quantize_mode=; None without one.

    @error ArgumentError  a number or a mode that is not valid, or values that are not f4 or f8.
    """
    number, mode = keys.get("significant_digits"), keys.get("quantize_mode")
    if not number:
        if mode is not None and number is None:
            raise ArgumentError(f"{where}: quantize_mode={mode!r} needs significant_digits=")
        return None
    mode = "BitGroom" if mode is None else mode
    if mode not in ATTRIBUTES:
        raise ArgumentError(f"{where}: quantize_mode is {mode!r:.60}, must be one of "
                            f"{', '.join(ATTRIBUTES)}")
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"{where}: significant_digits is {number!r:.60}, must be a whole number")
    stored = np.dtype(dtype) if dtype is not str else np.dtype(object)
    if stored.kind != "f" or stored.itemsize not in (4, 8):
        raise ArgumentError(f"{where}: significant_digits applies to float32 and float64, not to "
                            f"values that are stored as {stored}")
    digits, n_mantissa = (6, 23) if stored.itemsize == 4 else (15, 52)
    most = n_mantissa if mode == "BitRound" else digits
    if not 1 <= number <= most:
        unit = "bits" if mode == "BitRound" else "digits"
        raise ArgumentError(f"{where}: significant_digits is {number}, must be 1 to {most} {unit} "
                            f"for {stored} and {mode}")
    return Rounding(mode, int(number), stored.newbyteorder("="))


def rounding_in(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> Optional[Rounding]:
    """Return the rounding that a variable of an existing file records; None for none."""
    for mode, name in ATTRIBUTES.items():
        if name in attributes and dtype.kind == "f":
            try:
                return rounding_of(name, {"significant_digits": int(attributes[name]),
                                          "quantize_mode": mode}, dtype)
            except (TypeError, ValueError):
                return None  # another program's attribute with another meaning
    return None
