"""The run of restart.cpp in Python: killed at any moment, continued on any number of ranks.

Mode "a" repairs what a killed run left, then opens the file, or creates it.

    mpiexec -n 4 python3 restart.py run.nc [STEPS]
"""

import sys

import numpy as np
from mpi4py import MPI

import tailrace

N_ROWS, N_COLUMNS = 96, 160
comm = MPI.COMM_WORLD
path = sys.argv[1] if len(sys.argv) > 1 else "run.nc"
n_steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40
first, last = (N_ROWS * rank // comm.size for rank in (comm.rank, comm.rank + 1))

with tailrace.open(path, "a", comm) as file:
    if "u" not in file:
        for name, length in (("time", None), ("y", N_ROWS), ("x", N_COLUMNS)):
            file.create_dimension(name, length)
        file.create_variable("u", ("time", "y", "x"), "f8")
    u = (np.arange(first * N_COLUMNS, last * N_COLUMNS, dtype="f8") + 1) / 20000
    u = u.reshape(last - first, N_COLUMNS)
    step = 0
    if file.last_step is not None:
        u = file["u"][file.last_step, first:last]
        step = file.last_step + 1
    if comm.rank == 0:
        print(f"from step {step} on {comm.size} ranks", flush=True)
    for step in range(step, n_steps):
        u = 2.75 * u * (1 - u)  # The simulation.
        file["u"][step, first:last] = u
        file.flush()
