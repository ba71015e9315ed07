"""Program on h5py's parallel build that flushes after each step; every rank runs it.

    write_h5py_steps.py FILE
"""

import sys

import h5py
import numpy as np
from mpi4py import MPI

N_STEPS = 9


def field(step, shape):
    """Return smooth values that differ from step to step."""
    axes = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij")
    return (np.sin(sum((i + 1) * axis for i, axis in enumerate(axes)) + step / 5)).astype("f4")


def main():
    rank, n_ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
    with h5py.File(sys.argv[1], "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
        # One large volume a step; maps of which chunks hold several; chunks of the program's own.
        volume = file.create_dataset("volume", (N_STEPS, 16, 128, 128), "f4")
        maps = file.create_dataset("maps", (N_STEPS, 150, 200), "f4")
        own = file.create_dataset("own", (0, 150, 200), "f4", chunks=(4, 75, 100),
                                  maxshape=(None, 150, 200))
        for step in range(N_STEPS):
            own.resize(step + 1, axis=0)
            for dataset in (volume, maps, own):
                values = field(step, dataset.shape[1:])
                n = len(values)
                part = slice(n * rank // n_ranks, n * (rank + 1) // n_ranks)
                dataset[step, part] = values[part]
            file.flush()


if __name__ == "__main__":
    main()
