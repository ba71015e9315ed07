"""Indexing of tailrace's variables compared with NumPy's, for arrays in memory, without engine."""

import sys

import numpy as np
import pytest

from cli_tools import ROOT

sys.path.insert(0, str(ROOT / "python"))
index = pytest.importorskip("tailrace._index", exc_type=Exception)


def of_run(start, count, stride):
    return tuple(slice(at, at + (n - 1) * step + 1, step)
                 for at, n, step in zip(start, count, stride))


def read(array, key):
    selection = index.select(key, array.shape)
    values = np.empty(selection.read_shape, array.dtype)
    for start, count, stride, target in selection.pieces():
        values[target] = array[of_run(start, count, stride)]
    return selection.arrange(values)


def write(array, key, values):
    """Select like Variable.__setitem__, along unlimited dimensions beyond the end."""
    selection = index.select(key, array.shape, unlimited=(True,) * array.ndim,
                             value_shape=values.shape)
    spread = selection.spread(values)
    shape = tuple(max(pair) for pair in zip(array.shape, selection.end()))
    grown = np.full(shape, -1, array.dtype)
    grown[tuple(slice(0, n) for n in array.shape)] = array
    for start, count, stride, target in selection.pieces():
        grown[of_run(start, count, stride)] = spread[target]
    return grown


def a_key(random, length, array_allowed):
    kind = random.integers(0, 7 if array_allowed else 5)
    if kind == 0 and length:
        return int(random.integers(-length, length))
    if kind == 5:
        return random.random(length) < 0.5
    if kind == 6 and length:
        return random.integers(-length, length, size=random.integers(0, 6))

    def edge():
        return None if random.random() < 0.3 else int(random.integers(-length - 2, length + 3))

    step = None if random.random() < 0.4 else int(random.choice([-3, -2, -1, 1, 2, 3]))
    return slice(edge(), edge(), step)


def keys(n_keys):
    """Yield random arrays and keys with at most one array each.

    A key with an array has no integers, because NumPy would move that axis."""
    random = np.random.default_rng(7)
    for _ in range(n_keys):
        shape = tuple(random.integers(0, 9, size=random.integers(0, 4)))
        key = []
        for length in shape[:random.integers(0, len(shape) + 1)]:
            key.append(a_key(random, length, not any(isinstance(k, np.ndarray) for k in key)))
        if any(isinstance(k, np.ndarray) for k in key):
            key = [slice(k, k + 1 or None) if isinstance(k, int) else k for k in key]
        if random.random() < 0.3:
            key.append(Ellipsis)
        yield random, random.integers(0, 1000, size=shape), tuple(key)


def test_reading_is_numpys():
    for random, array, key in keys(3000):
        if random.random() < 0.2:
            key = (*key[:1], None, *key[1:])
        wanted, got = array[key], read(array, key)
        assert got.shape == wanted.shape and (got == wanted).all(), (array.shape, key)


def test_writing_is_numpys():
    for random, array, key in keys(3000):
        values = random.integers(0, 1000, size=array[key].shape)
        wanted = array.copy()
        wanted[key] = values
        selection = index.select(key, array.shape, unlimited=(False,) * array.ndim,
                                 value_shape=values.shape)
        spread = selection.spread(values)
        for start, count, stride, target in selection.pieces():
            array[of_run(start, count, stride)] = spread[target]
        assert (array == wanted).all(), key


def test_several_arrays_select_their_product():
    array = np.arange(5 * 6 * 7).reshape(5, 6, 7)
    rows, columns = np.array([4, 0, 0]), np.arange(7) % 3 == 0
    assert (read(array, (rows, slice(None), columns)) == array[rows][:, :, columns]).all()
    assert (read(array, (rows, 2, columns)) == array[rows][:, 2, columns]).all()


def test_scattered_positions_are_read_in_runs_and_dense_ones_at_once():
    far = list(index.select([3, 5, 7, 500, 900], (1000,)).pieces())
    assert [(p.start, p.extents, p.stride) for p in far] == [
        ((3,), (3,), (2,)), ((500,), (2,), (400,))]
    near = list(index.select([3, 4, 6, 8, 9], (1000,)).pieces())
    assert [(p.start, p.extents, p.stride) for p in near] == [((3,), (7,), (1,))]


def test_writing_beyond_the_end_of_unlimited_dimensions():
    empty = np.zeros((0, 3), int)
    assert write(empty, slice(None), np.ones((4, 3), int)).shape == (4, 3)
    assert write(empty, (Ellipsis,), np.ones((4, 3), int)).shape == (4, 3)
    assert write(empty, 2, np.ones(3, int)).tolist() == [[-1] * 3, [-1] * 3, [1] * 3]
    three = np.zeros((3, 3), int)
    assert write(three, slice(3, 5), np.ones((2, 3), int)).shape == (5, 3)
    assert write(three, slice(2, None), np.ones((3, 3), int)).shape == (5, 3)
    assert write(three, slice(None), np.array(1)).shape == (3, 3)
    assert write(three, slice(0, 8, 4), np.ones((2, 3), int))[4].tolist() == [1] * 3
    rows = np.arange(6).reshape(3, 2) + 1
    grown = write(np.zeros((3, 2), int), [9, 0, 5], rows)
    assert grown.shape == (10, 2)
    assert grown[[9, 0, 5]].tolist() == rows.tolist()
    assert grown[[3, 4, 8]].tolist() == [[-1] * 2] * 3
    assert write(three, (slice(None), np.array([1, 3])), np.ones((3, 2), int)).shape == (3, 4)
    assert write(three, [-1, 3], np.ones((2, 3), int))[2:].tolist() == [[1] * 3] * 2
    with pytest.raises(IndexError):
        index.select([0, 3], (3,), unlimited=(False,), value_shape=(2,))
    with pytest.raises(IndexError):
        index.select([-4], (3,), unlimited=(True,), value_shape=(1,))


@pytest.mark.parametrize("key, kind", [
    (8, IndexError), (-9, IndexError), ((0, 0, 0), IndexError), ([8], IndexError),
    ([0.5], ValueError), ((Ellipsis, Ellipsis), ValueError), (slice(None, None, 0), ValueError),
    (np.ones(7, bool), IndexError), (True, ValueError), ([[1]], ValueError),
])
def test_what_is_no_index(key, kind):
    with pytest.raises(kind):
        index.select(key, (8, 2))
