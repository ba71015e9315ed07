"""Selections composed of several hyperslabs: random ones against a NumPy model, on 1 to 3 ranks.

Parts overlap, are strided, or are combined by AND, XOR and the two differences; the selection may
have an offset. Memory is contiguous, strided, reversed, or in two parts, as doubles or floats."""

import h5py
import numpy as np
import pytest
from hdf5_runs import ALL_FRONTS, program_of, run, verified

#: H5Sselect_hyperslab's operations, in the numbering of write_unions.c.
COMBINE = [lambda _, b: b, np.logical_or, np.logical_and, np.logical_xor,
           lambda a, b: a & ~b, lambda a, b: b & ~a]
#: HDF5 1.10.8 counts unions of one dimension wrongly.
SHAPES = [(70, 71), (60, 90), (9, 31, 40), (4, 20, 30), (20, 1200)]


class Program:
    """A random list of operations, and what the datasets and reads must hold."""

    def __init__(self, seed, ranks, offsets):
        self.random, self.offsets = np.random.default_rng(seed), offsets
        self.ranks = ranks
        self.lines, self.reads = [], []
        self.values = []

    def number(self, most):
        return int(self.random.integers(most))

    def create(self, shape, chunked):
        self.lines.append(["D", len(self.values), len(shape), int(chunked), *shape])
        self.values.append(np.zeros(shape))

    def part(self, shape, small):
        """One hyperslab, as HDF5's four vectors, and the elements that it selects."""
        words, axes = [], []
        for n in shape:
            start, block = self.number(n), min(n, 1 + self.number(2 if small else 4))
            stride = block + self.number(3)
            most = (n - start - block) // stride + 1 if n - start >= block else 0
            if most < 1:
                start, most = n - block, 1
            count = 1 + self.number(min(most, 4) if small else most)
            words.append((start, stride, count, block))
            axis = np.zeros(n, bool)
            for i in range(count):
                axis[start + i * stride:start + i * stride + block] = True
            axes.append(axis)
        mask = axes[0]
        for axis in axes[1:]:
            mask = mask[..., None] & axis
        return [word[w] for w in range(4) for word in words], mask

    def selection(self, shape):
        """A selection's words, and its mask in the dataset."""
        offset = [self.number(5) - 2 if self.offsets else 0 for _ in shape]
        # The parts lie in the dataset before and after they are moved by the offset.
        inner = [n - abs(by) for n, by in zip(shape, offset)]
        low = [max(0, -by) for by in offset]
        n_parts = 1 + self.number(40 if self.number(2) else 5)
        mask, words = np.zeros(inner, bool), []
        for i in range(n_parts):
            numbers, part = self.part(inner, n_parts > 5)
            operation = 0 if i == 0 else 1 if self.number(3) else 1 + self.number(5)
            mask = COMBINE[operation](mask, part)
            rank = len(shape)
            starts = [start + first for start, first in zip(numbers[:rank], low)]
            words += [operation, *starts, *numbers[rank:]]
        moved = np.zeros(shape, bool)
        moved[tuple(slice(first + by, first + by + n)
                    for first, by, n in zip(low, offset, inner))] = mask
        return [*offset, n_parts, *words], np.flatnonzero(moved)

    def transfer(self, writes):
        which = self.number(len(self.values))
        values = self.values[which]
        words, at = self.selection(values.shape)
        how = [self.number(self.ranks), which, self.number(4), self.number(2)]
        if writes:
            seed = self.number(100_000)
            values.reshape(-1)[at] = seed + np.arange(len(at))
            self.lines.append(["W", *how, seed, *words])
        else:
            self.reads.append(values.reshape(-1)[at].copy())
            self.lines.append(["R", *how, *words])

    def text(self):
        return "\n".join(" ".join(map(str, line)) for line in self.lines) + "\n"


def random_program(seed, ranks, n=60, offsets=True):
    program = Program(seed, ranks, offsets)
    for i, shape in enumerate(SHAPES):
        program.create(shape, i % 2)
    for _ in range(n):
        kind = program.number(12)
        if kind < 2:
            program.lines.append(["FC"[kind]])
        else:
            program.transfer(kind < 9)
    return program


def perform(program, folder, ranks, front, ours=True, **more):
    (folder / "list.txt").write_text(program.text())
    words = [program_of(front, "write_unions"), folder, folder / "list.txt"]
    return run([*words, "served"] if ours else words, ranks, ours, front=front, **more)


def check(program, folder):
    for i, values in enumerate(program.reads):
        assert np.array_equal(np.fromfile(folder / f"read_{i}.bin"), values), f"read {i}"
    with h5py.File(folder / "unions.h5") as file:
        for i, values in enumerate(program.values):
            assert np.array_equal(file[f"d{i}"][...], values), f"d{i}"


def test_the_model_is_hdf5s(tmp_path):
    # HDF5 1.10.8 itself misplaces offset selections in collective transfers without chunks.
    program = random_program(1, 2, offsets=False)
    perform(program, tmp_path, 2, "", ours=False)
    check(program, tmp_path)


@pytest.mark.parametrize("front", ALL_FRONTS, ids=lambda end: f"hdf5{end}")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_random_unions(tmp_path, ranks, front):
    program = random_program(10 * ranks, ranks)
    said = perform(program, tmp_path, ranks, front, TAILRACE_OPTIONS="codec=deflate")
    assert "points and irregular hyperslabs" in said
    check(program, tmp_path)


@pytest.mark.sample(4)
@pytest.mark.parametrize("options", ["codec=none", "codec=none,memory=1100000",
                                     "codec=deflate\nmode=async"])
@pytest.mark.parametrize("seed", range(3))
def test_unions_under_options(tmp_path, seed, options):
    program = random_program(100 + seed, 2, n=120)
    perform(program, tmp_path, 2, "", TAILRACE_OPTIONS=options)
    check(program, tmp_path)


def test_lossy_unions(tmp_path):
    program = random_program(7, 2, offsets=False)
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    for folder in (plain, ours):
        folder.mkdir()
    perform(program, plain, 2, "", ours=False)
    perform(program, ours, 2, "", TAILRACE_OPTIONS="codec=trz,bound=abs=0.25")
    done = verified(plain / "unions.h5", ours / "unions.h5")
    assert done.returncode == 0, done.stdout + done.stderr
