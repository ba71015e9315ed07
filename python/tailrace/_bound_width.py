"""The engine's one rule on bounds that swamp the data (src/policy/bound_width), for one array.

The h5py filters need it where there is no engine; a test holds it to the engine's answers.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

#: An extreme this many times the spread of all other values away from them is no value.
FILL_DISTANCE_MIN = 100.0
#: Fewer other values show no spread that could be relied on.
FILL_REST_MIN = 4
#: A bound is broad if more than this share of the values other than 0 is smaller than the bound.
BELOW_SHARE_MAX = 0.25


def undeclared_fill(values: npt.NDArray[Any]) -> Optional[float]:
    """The extreme of finite values without fill that is a fill value nobody has declared.

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
    """Why a bound that is relative to the range of the values is refused; "" where it is not.

    Warns of a bound that many values are smaller than.
    """
    fill = undeclared_fill(values)
    if fill is not None and not allowed:
        return (f"{where}: the bound comes to {bound:.3g}, as {fill:g} widens the range of the "
                f"values: it is a fill value that nobody has declared. Declare it (fill={fill:g}), "
                "or allow the bound (allow_wide_bound=True)")
    sizes = np.abs(values[values != 0])
    if sizes.size and math.isfinite(bound):
        below = np.count_nonzero(sizes < bound) / sizes.size
        if below > BELOW_SHARE_MAX:
            warnings.warn(f"{where}: the bound comes to {bound:.3g}, and {100 * below:.3g} % of "
                          "the values other than 0 are smaller than that; pw_rel= keeps each "
                          "value to its own size, abs= is in their unit", RuntimeWarning,
                          stacklevel=4)
    return ""
