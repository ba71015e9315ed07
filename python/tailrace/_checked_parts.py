"""Values of xarray in their stored form, each compared with the original while it is written."""

from __future__ import annotations

import warnings
from typing import Any, Optional

import numpy as np
import xarray as xr
from xarray.coding import times

from ._errors import ArgumentError


class CheckedParts:
    """A variable encoded part by part, each compared with the original. Values that the stored
    numbers wrap, round to infinity or mistake for missing raise an error and are not written."""

    def __init__(self, name: str, source: xr.Variable, encoded: xr.Variable,
                 bound: Optional[float] = None) -> None:
        """bound: largest allowed error; default: the error of rounding to stored numbers."""
        self._name, self._source, self._bound = name, source, bound
        encoding = {key: value for key, value in source.encoding.items() if value is not None}
        self._scale = float(np.asarray(encoding.get("scale_factor", 1.0)))
        self._offset = float(np.asarray(encoding.get("add_offset", 0.0)))
        # Only these determine the encoding; attributes of the data themselves do not.
        self._fills = [encoded.attrs[key] for key in ("_FillValue", "missing_value")
                       if key in encoding and key in encoded.attrs]
        self._marks = [value for key in ("_FillValue", "missing_value") if key in source.attrs
                       for value in np.asarray(source.attrs[key]).ravel()]
        self._timed = source.dtype.kind in "mMO"
        self.dtype = encoded.dtype
        self.shape = encoded.shape
        packed = (self._scale, self._offset) != (1.0, 0.0)
        self._room = bound if bound is not None else (
            abs(self._scale) / 2 if packed and self.dtype.kind in "iu" else 0.0)
        # Additional rounding error: xarray's division and product are inexact in its precision.
        self._rounding = 2.0**-50
        if self.dtype.kind == "f" and not self._timed:
            self._rounding = max(self._rounding, float(np.finfo(self.dtype).eps))
        small = {"f": 4, "i": 2, "u": 2}.get(source.dtype.kind, 0)
        if packed and bound is None and source.dtype.itemsize <= small:
            self._rounding = max(self._rounding, 2.0**-21)

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        part = self._source[key] if self.shape else self._source
        part = xr.Variable(part.dims, np.asarray(part.data), self._source.attrs,
                           self._source.encoding)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # values that do not fit raise an error below
            encoded = xr.conventions.encode_cf_variable(part, name=self._name)
            stored = np.asarray(encoded.data)
            given = self._numbers_of(part, encoded)
            read = self._unpacked(stored)
            missing = np.zeros(stored.shape, bool)
            for fill in self._fills:
                missing |= np.isin(stored, fill)
            error = np.abs(read - given)
            near = np.isfinite(error) & (
                error <= self._room + self._rounding * (np.abs(given) + abs(self._offset)))
            fits = near | (read == given)
            # Integers, and values in stored form, use no NaN: their marks are ordinary values.
            marked = np.isin(given, self._marks) | (part.dtype.kind in "iu")
            fits &= ~missing | ((read == given) & marked)
            fits |= np.isnan(given) & (missing | np.isnan(read))
            if self._timed and stored.dtype == "i8":  # xarray's NaT, which it reads as such
                fits |= np.isnan(given) & (stored == np.iinfo("i8").min)
        if not fits.all():
            self._refuse(part, given, read, missing, fits)
        return stored

    def _numbers_of(self, part: xr.Variable, encoded: xr.Variable) -> np.ndarray[Any, Any]:
        """Return the values expected on reading: times as numbers of the file's units, in double
        precision."""
        if not self._timed:
            return np.asarray(part.data, "f8")
        how = {key: part.encoding[key] for key in ("units", "calendar") if key in part.encoding}
        for key, value in how.items():
            if not same_attribute(key, encoded.attrs.get(key, value), value):
                raise ArgumentError(f"variable {self._name!r} is stored with {key} = {value!r} in "
                                    f"the file, its values need {encoded.attrs[key]!r}")
        coder = times.CFTimedeltaCoder() if part.dtype.kind == "m" else times.CFDatetimeCoder()
        wide = coder.encode(xr.Variable(part.dims, part.data, {}, {**how, "dtype": np.dtype("f8")}))
        return np.asarray(wide.data, "f8")

    def _refuse(self, part: xr.Variable, given: Any, read: Any, missing: Any, fits: Any) -> None:
        at = tuple(int(where[0]) for where in np.nonzero(~np.atleast_1d(fits)))
        value = np.atleast_1d(np.asarray(part.data) if self._timed else given)[at]
        text = str(value) if self._timed else repr(float(value))
        how = [f"{key} {value!r}" for key, value in (
            ("scale_factor", self._scale), ("add_offset", self._offset),
            ("units", part.encoding.get("units"))) if value not in (None, 1.0, 0.0)]
        within = "" if self._bound is None else f" within {self._bound!r}"
        if np.atleast_1d(missing)[at]:
            became = "missing"
        else:
            became = repr(float(np.atleast_1d(read)[at]))
        raise ArgumentError(
            f"variable {self._name!r}: {text} does not fit {self.dtype}"
            f"{' with ' if how else ''}{' and '.join(how)}{within}: it would read as {became}")

    def _unpacked(self, stored: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        unsigned = str(self._source.encoding.get("_Unsigned", "false")).lower() == "true"
        if unsigned and stored.dtype.kind == "i":
            stored = stored.view(f"u{stored.dtype.itemsize}")
        values: np.ndarray[Any, Any] = stored.astype("f8") * self._scale + self._offset
        return values

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        return self[...]


def same_attribute(key: str, ours: Any, theirs: Any) -> bool:
    """True if two values of an attribute have one meaning: calendars, units of time, NaN."""
    if key == "calendar":
        ours, theirs = ("standard" if one in (None, "gregorian") else one for one in (ours, theirs))
    if ours is None or theirs is None:
        return ours is theirs
    if key == "units" and "since" in str(ours) and "since" in str(theirs):
        (step, _, since), (other_step, _, other) = (str(units).partition(" since ")
                                                    for units in (ours, theirs))
        try:
            return step == other_step and bool(np.datetime64(since.strip().replace(" ", "T", 1))
                                               == np.datetime64(other.strip().replace(" ", "T", 1)))
        except ValueError:
            return bool(ours == theirs)
    one, other_one = np.asarray(ours), np.asarray(theirs)
    return bool(np.array_equal(one, other_one, equal_nan=one.dtype.kind == "f"
                               and other_one.dtype.kind == "f"))
