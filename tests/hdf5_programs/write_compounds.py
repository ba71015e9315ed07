"""Random compounds and other elements that are not numbers, written in parallel.

    write_compounds.py FILE SEED

Each rank writes boxes of its own rows, twice, over all or some members; the file is closed, opened
again, extended and written again. Every rank draws the same program from the seed.
"""

import sys

import h5py
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
draw = np.random.default_rng(int(sys.argv[2]))


def random_type():
    """Return a type of fixed size: a compound, a text or opaque bytes."""
    kind = draw.integers(6)
    if kind == 0:
        return np.dtype(f"S{draw.integers(3, 60)}")
    if kind == 1:
        return np.dtype(f"V{draw.integers(3, 60)}")
    members = []
    for i in range(int(draw.integers(1, 7))):
        member = draw.choice(["f4", "f8", "i1", "i2", "i4", "u8", ">f4", ">i8", "S5", "f2", "?"])
        shape = tuple(draw.integers(1, 4, size=int(draw.integers(0, 3))))
        if draw.random() < 0.1:
            member = [("a", "f4"), ("b", "i2")]
        members.append((f"m{i}", member, shape) if shape else (f"m{i}", member))
    return np.dtype(members, align=bool(draw.integers(2)))


def random_values(dtype, shape):
    """Return values that compress, with zeros in padding."""
    values = np.zeros(shape, dtype)
    if dtype.names is None:
        raw = draw.integers(97, 101, size=(*shape, dtype.itemsize), dtype="u1")
        values = raw.view(dtype).reshape(shape)
        return values
    for name in dtype.names:
        part = values[name]
        if part.dtype.names:
            for inner in part.dtype.names:
                part[inner] = draw.integers(0, 50, size=part.shape)
        elif part.dtype.kind == "S":
            part[...] = draw.choice([b"ab", b"c", b"defgh"], size=part.shape)
        else:
            part[...] = draw.integers(0, 2 if part.dtype.kind == "b" else 100, size=part.shape)
    return values


def box_of_rank(shape, rank):
    """Return the rows of a rank, and a random part of the other dimensions."""
    first, end = (shape[0] * r // comm.size for r in (rank, rank + 1))
    slices = [slice(first, end)]
    for extent in shape[1:]:
        start = int(draw.integers(0, extent))
        slices.append(slice(start, int(draw.integers(start, extent)) + 1))
    return tuple(slices)


def write(dataset, model):
    collective = bool(draw.integers(2))
    n_names = len(model.dtype.names or ())
    some = model.dtype.names if n_names < 2 or draw.random() < 0.6 else \
        sorted(draw.choice(model.dtype.names, size=int(draw.integers(1, n_names)), replace=False))
    # Nested members are written as a whole only: h5py cannot select inside them.
    whole = some is None or len(some) == n_names or \
        any(model.dtype[name].names or model.dtype[name].subdtype for name in model.dtype.names)
    for rank in range(comm.size):
        box = box_of_rank(model.shape, rank)
        values = random_values(model.dtype, model[box].shape)
        if whole:
            model[box] = values
        else:
            for name in some:
                model[name][box] = values[name]
        if rank != comm.rank:
            continue
        mine = (box, values)
    box, values = mine
    if whole:
        if collective:
            with dataset.collective:
                dataset[box] = values
        else:
            dataset[box] = values
    else:
        for name in some:
            dataset[(*box, name)] = values[name]


def program(path):
    models = {}
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        for i in range(int(draw.integers(1, 4))):
            dtype = random_type()
            shape = tuple(int(n) for n in draw.integers(4, 60, size=int(draw.integers(1, 3))))
            shape = (shape[0] * int(draw.integers(1, 60)), *shape[1:])
            options = {}
            if draw.random() < 0.5:
                options["chunks"] = tuple(int(draw.integers(1, n + 1)) for n in shape)
                options["maxshape"] = (None, *shape[1:])
                if draw.random() < 0.4:
                    options.update(compression="gzip", shuffle=bool(draw.integers(2)))
                options["chunks"] = (max(options["chunks"][0], 16), *options["chunks"][1:])
            fill = random_values(dtype, (1,))[0] if draw.random() < 0.5 else None
            if fill is not None and dtype.kind != "V":
                options["fillvalue"] = fill
            dataset = file.create_dataset(f"d{i}", shape, dtype, **options)
            model = np.zeros(shape, dtype)
            if "fillvalue" in options:
                model[...] = fill
            models[f"d{i}"] = model
            for _ in range(int(draw.integers(1, 4))):
                write(dataset, model)
                if draw.random() < 0.3:
                    file.flush()
            # Values of other ranks are certain after a flush only; of flushes that run in the
            # background, the second completes the first.
            file.flush()
            file.flush()
            rows = slice(model.shape[0] // 3, model.shape[0] // 2)
            assert dataset[rows].tobytes() == model[rows].tobytes(), dataset
    with h5py.File(path, "a", driver="mpio", comm=comm) as file:
        for name, model in models.items():
            dataset = file[name]
            if dataset.maxshape[0] is None and draw.random() < 0.7:
                grown = model.shape[0] + int(draw.integers(1, 100))
                dataset.resize(grown, axis=0)
                more = np.zeros((grown, *model.shape[1:]), model.dtype)
                more[...] = np.frombuffer(np.asarray(dataset.fillvalue, model.dtype).tobytes(),
                                          model.dtype)[0]
                more[:model.shape[0]] = model
                models[name] = model = more
            keep = draw.bit_generator.state
            whole = random_values(model.dtype, model.shape)
            draw.bit_generator.state = keep
            first, end = (model.shape[0] * r // comm.size for r in (comm.rank, comm.rank + 1))
            half = slice((first + end) // 2, end)
            dataset[half] = whole[half]
            for rank in range(comm.size):
                first, end = (model.shape[0] * r // comm.size for r in (rank, rank + 1))
                part = slice((first + end) // 2, end)
                model[part] = whole[part]
            random_values(model.dtype, (1,))
    return models


models = program(sys.argv[1])
if comm.rank == 0:
    np.savez(sys.argv[1] + ".npz", **{name: np.frombuffer(model.tobytes(), "u1")
                                      for name, model in models.items()})
