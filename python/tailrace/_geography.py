"""Latitude and longitude of a variable's values, for the maps of a report.

CF conventions: coordinates are recognized by their units or standard names. They are variables of
the names of dimensions, or variables of two dimensions of a curvilinear grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from ._errors import TailraceError
from ._measures import Numbers
from ._variable import Variable

_UNITS = {"latitude": ("degrees_north", "degree_north", "degree_n", "degrees_n", "degreen",
                       "degreesn"),
          "longitude": ("degrees_east", "degree_east", "degree_e", "degrees_e", "degreee",
                        "degreese")}


@dataclass(frozen=True)
class Places:
    """Places of the cells of a map: their latitudes and longitudes, each for one dimension, or for
    both."""

    latitude: Numbers
    longitude: Numbers
    transposed: bool = False  #: The map's first dimension is that of longitudes.

    @property
    def is_curvilinear(self) -> bool:
        return self.latitude.ndim == 2


@dataclass(frozen=True)
class Coordinates:
    """Latitudes and longitudes that a variable has, by kind, with their dimensions."""

    found: dict[str, tuple[tuple[str, ...], Numbers]] = field(default_factory=dict)

    def axes(self, dims: Sequence[str], shape: Sequence[int]) -> list[int]:
        """Return the positions of the two dimensions of a map; [] if the data have no places."""
        if len(self.found) < 2:
            return []
        names = {name for own, _ in self.found.values() for name in own}
        at = [dims.index(name) for name in dims if name in names]
        return at if len(at) == 2 and all(shape[axis] > 1 for axis in at) else []

    def places(self, dims: Sequence[str], steps: Sequence[int]) -> Optional[Places]:
        """Return the places of the cells of a map along these dimensions."""
        if len(self.found) < 2 or {name for own, _ in self.found.values() for name in own} != set(
                dims):
            return None
        middles: list[Numbers] = []
        for kind in ("latitude", "longitude"):
            own, values = self.found[kind]
            for axis, name in enumerate(own):
                n, step = values.shape[axis], steps[list(dims).index(name)]
                values = np.take(values, np.minimum(np.arange(0, n, step) + step // 2, n - 1), axis)
            middles.append(values if list(own) in (list(dims), [own[0]]) else values.T)
        return Places(middles[0], middles[1],
                      len(self.found["latitude"][0]) == 1
                      and self.found["latitude"][0][0] == dims[1])


def coordinates_of(variable: Any) -> Coordinates:
    """Return latitudes and longitudes that lie along the dimensions of a variable of a file."""
    if not isinstance(variable, Variable):
        return Coordinates()
    dims = variable.dims
    found: dict[str, tuple[tuple[str, ...], Numbers]] = {}
    for other in _visible(variable):
        kind = _kind_of(other)
        own = other.dims
        if not kind or kind in found or not own or not set(own) <= set(dims) or len(own) > 2:
            continue
        if other.dtype.kind not in "fiu" or other.size > 1 << 24:
            continue
        values = np.asarray(other[...], np.float64)
        if len(own) == 1 and _is_ascending_or_descending(values):
            found[kind] = own, values
        elif len(own) == 2 and np.isfinite(values).any():
            found[kind] = own, np.where(np.abs(values) <= 720, values, np.nan)
    ranks = {len(own) for own, _ in found.values()}
    return Coordinates(found) if len(found) == 2 and len(ranks) == 1 else Coordinates()


def place_text(variable: Any, dim: str, index: int) -> str:
    """Return the place of a slice along a dimension: its coordinate with unit, else its index."""
    if isinstance(variable, Variable):
        for other in _visible(variable):
            if other.name != dim or other.dims != (dim,) or other.dtype.kind not in "fiu":
                continue
            unit = other.attrs.get("units", "")
            return f"{dim} = {other[index]:g} {unit if isinstance(unit, str) else ''}".rstrip()
    return f"{dim}[{index}]"


def _visible(variable: Variable) -> list[Variable]:
    """Return the variables of the group and of those above: of one dimension first."""
    found: list[Variable] = []
    path = variable.path
    while path:
        path = path.rpartition("/")[0]
        try:
            found += variable._file[path or "/"].variables.values()
        except TailraceError:
            continue
    return sorted(found, key=lambda one: one.ndim)


def _kind_of(variable: Variable) -> str:
    attrs = dict(variable.attrs)
    units = str(attrs.get("units", "")).lower()
    for kind, names in _UNITS.items():
        if units in names or attrs.get("standard_name") == kind:
            return kind
    return ""


def _is_ascending_or_descending(values: Numbers) -> bool:
    steps = np.diff(values)
    return bool(np.isfinite(values).all() and ((steps > 0).all() or (steps < 0).all()))


def edges(middles: Numbers) -> Numbers:
    """Return the edges of cells with these middles.

    >>> edges(np.array([0.0, 1.0, 3.0]))
    array([-0.5,  0.5,  2. ,  4. ])
    """
    inner = (middles[1:] + middles[:-1]) / 2
    first, last = 2 * middles[0] - inner[0], 2 * middles[-1] - inner[-1]
    found: Numbers = np.concatenate([[first], inner, [last]])
    return found


def gridded(places: Places, values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return (edges of latitudes, edges of longitudes, values) of a curvilinear map on a regular
    grid: the mean of the values in each cell. Cells without a place get a neighbour's value."""
    latitude = places.latitude.ravel()
    longitude = (places.longitude.ravel() + 180) % 360 - 180
    known = np.isfinite(latitude) & np.isfinite(longitude)
    if np.ptp(longitude[known]) > 350 > np.ptp(places.longitude.ravel()[known] % 360):
        longitude = places.longitude.ravel() % 360  # a region across the date line
    latitude, longitude, flat = latitude[known], longitude[known], values.ravel()[known]
    height, width = np.ptp(latitude) or 1.0, np.ptp(longitude) or 1.0
    n_cells = max(16.0, flat.size / 2)
    rows = int(np.clip(np.sqrt(n_cells * height / width), 4, 360))
    columns = int(np.clip(np.sqrt(n_cells * width / height), 4, 480))
    bins = [np.linspace(one.min(), one.max() + 1e-9 * span, n + 1) for one, span, n in
            ((latitude, height, rows), (longitude, width, columns))]
    number = np.isfinite(flat)
    counts = np.histogram2d(latitude[number], longitude[number], bins)[0]
    sums = np.histogram2d(latitude[number], longitude[number], bins, weights=flat[number])[0]
    places_here = np.histogram2d(latitude, longitude, bins)[0]
    with np.errstate(all="ignore"):
        cells: Numbers = np.where(counts > 0, sums / counts, np.nan)
    for rows_off, columns_off in ((0, 1), (2, 1), (1, 0), (1, 2)):
        around = np.pad(cells, 1, constant_values=np.nan)
        neighbour = around[rows_off:rows_off + rows, columns_off:columns_off + columns]
        cells = np.where((places_here == 0) & np.isnan(cells), neighbour, cells)
    return bins[0], bins[1], cells
