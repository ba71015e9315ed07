"""The engine's rule on bounds that exceed the data (src/policy/bound_width), for one array.

The h5py filters need it without the engine; a test compares it with the engine's answers.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._printable import warn

#: An extreme at this many times the spread of all other values away from them is a fill value.
FILL_DISTANCE_MIN = 100.0
#: Fewer other values than this have no reliable spread.
FILL_REST_MIN = 4
#: A bound is broad if more than this share of the nonzero values is smaller than the bound.
BELOW_SHARE_MAX = 0.25


def undeclared_fill(values: npt.NDArray[Any]) -> Optional[float]:
    """Return the extreme of the finite, non-fill values that must be an undeclared fill value.

    >>> undeclared_fill(np.array([4.6, 12.0, 30.0, 40.8, -1e10, -1e10]))
    -10000000000.0
    >>> undeclared_fill(np.array([0.0, 0.0, 1.0, 1.0, 0.0])) is None
    True
    """
    if values.size == 0:
        return None
    found, farthest = None, 0.0
    for extreme in (values.min(), values.max()):
        rest = values[values != extreme]
        if extreme == 0 or values.size - rest.size < 2 or rest.size < FILL_REST_MIN:
            continue
        least, greatest, value = (float(x) / 128 for x in (rest.min(), rest.max(), extreme))
        spread = greatest - least
        distance = max(least - value, value - greatest) / spread if spread > 0 else 0.0
        if distance >= FILL_DISTANCE_MIN and distance > farthest:
            found, farthest = float(extreme), distance
    return found


def check_bound_width(where: str, values: npt.NDArray[Any], bound: float, allowed: bool) -> str:
    """Return why a bound relative to the range of the values is refused; "" if it is not.

    Warns if many values are smaller than the bound.
    """
    fill = undeclared_fill(values)
    if fill is not None and not allowed:
        return (f"{where}: the absolute bound is {bound:.3g}, because {fill:g}, an undeclared fill "
                f"value, widens the range of the values. Declare it (fill={fill:g}), or allow the "
                "bound (allow_wide_bound=True)")
    sizes = np.abs(values[values != 0])
    if sizes.size and math.isfinite(bound):
        below = np.count_nonzero(sizes < bound) / sizes.size
        if below > BELOW_SHARE_MAX:
            warn(f"{where}: the absolute bound is {bound:.3g}, and {100 * below:.3g} % of the "
                 "values other than 0 are smaller than that; give pw_rel=, which is relative to "
                 "each value, or abs= in their unit")
    return ""
