"""Prints what h5py reads from each dataset of a file. It runs with and without the serial library
preloaded. It must run on the system's Python, whose h5py is older."""

import hashlib
import sys

import h5py


def line(name, item):
    if not isinstance(item, h5py.Dataset):
        return
    try:
        values = item[()]
    except (OSError, TypeError, ValueError, RuntimeError) as why:
        print(name, type(why).__name__)
        return
    # The bytes of lists and texts are addresses.
    raw = values.tobytes() if hasattr(values, "tobytes") and not values.dtype.hasobject else (
        repr(values).encode())
    print(name, item.dtype, item.shape, hashlib.sha1(raw).hexdigest())


if __name__ == "__main__":
    with h5py.File(sys.argv[1], "r") as file:
        file.visititems(line)
