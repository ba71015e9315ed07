"""Expected contents of a concatenation, computed by h5py and NumPy only, and their comparison with
a file."""

import subprocess

import h5py
import numpy as np
from cli_tools import let_clients_forget


def all_objects(file):
    """Return the object of every hard link by path, including further links to one object."""
    found = {}

    def walk(group, prefix, above):
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            path = f"{prefix}/{name}"
            found[path] = group[name]
            address = h5py.h5o.get_info(group[name].id).addr
            if isinstance(group[name], h5py.Group) and address not in above:
                walk(group[name], path, above | {address})

    walk(file, "", {h5py.h5o.get_info(file["/"].id).addr})
    return found


def is_appended(dataset):
    return dataset.shape is not None and dataset.shape != ()


def expected_values(files, path):
    """Return all files' rows of a dataset, or the first file's value if it has no rows."""
    first = files[0][path]
    if not is_appended(first):
        return first[()]
    parts = [file[path][()] for file in files]
    rows = np.empty((sum(len(part) for part in parts), *parts[0].shape[1:]), parts[0].dtype)
    at = 0
    for part in parts:
        rows[at:at + len(part)] = part
        at += len(part)
    return rows


def same(a, b):
    """Return True if values are equal bit for bit, NaN included, also behind pointers."""
    if isinstance(a, h5py.Empty) or isinstance(b, h5py.Empty):
        return isinstance(a, h5py.Empty) and isinstance(b, h5py.Empty) and a.dtype == b.dtype
    if isinstance(a, (str, bytes, type(None))) or isinstance(b, (str, bytes, type(None))):
        return a == b
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.hasobject:
        return a.tobytes() == b.tobytes()
    if a.dtype.names:
        return all(same(a[name], b[name]) for name in a.dtype.names)
    return all(same(x, y) for x, y in zip(a.ravel(), b.ravel()))


def fill_value(dataset):
    properties = dataset.id.get_create_plist()
    if properties.fill_value_defined() != h5py.h5d.FILL_VALUE_USER_DEFINED:
        return None
    # Zeros as an explicit fill value equal those by default.
    value = np.asarray(dataset.fillvalue)
    return None if value.tobytes() == bytes(value.nbytes) else value


def check_attributes(expected, got, path):
    # If a codec was chosen, the root has an attribute about the filters that readers need.
    extra = {"tailrace_readers_need"} if path == "/" else set()
    assert sorted(set(expected) - extra) == sorted(set(got) - extra), path
    for name in expected:
        if name in ("REFERENCE_LIST", "DIMENSION_LIST"):
            continue  # references: scales are compared separately
        label = f"{path}, attribute {name}"
        assert expected.get_id(name).get_type() == got.get_id(name).get_type(), label
        assert same(expected[name], got[name]), label


def check_links(expected, got, path):
    assert sorted(expected) == sorted(got), path
    if expected.id.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED:
        assert list(expected) == list(got), f"{path}: order of links"
    for name in expected:
        ours, theirs = got.get(name, getlink=True), expected.get(name, getlink=True)
        assert type(ours) is type(theirs), f"{path}/{name}"
        if isinstance(theirs, h5py.SoftLink):
            assert ours.path == theirs.path, f"{path}/{name}"


def same_objects(objects):
    """Return the sets of paths that lead to one object."""
    by_address = {}
    for path, item in objects.items():
        by_address.setdefault(h5py.h5o.get_info(item.id).addr, set()).add(path)
    return sorted(map(sorted, by_address.values()))


def check_dataset(files, got, path):
    first = files[0][path]
    assert got.id.get_type() == first.id.get_type(), f"{path}: type"
    values = expected_values(files, path)
    if is_appended(first):
        assert got.shape == (len(values), *first.shape[1:]), path
        if first.maxshape[0] is None:
            assert got.maxshape[0] is None, f"{path}: no longer unlimited"
        assert same(fill_value(first), fill_value(got)), f"{path}: fill value"
    assert same(values, got[()]), f"{path}: values"
    scales = [[s.name for s in dimension.values()] for dimension in first.dims]
    assert [[s.name for s in dimension.values()] for dimension in got.dims] == scales, path
    assert [d.label for d in got.dims] == [d.label for d in first.dims], path


def check(output, inputs, extra=()):
    """Check that the output is the concatenation of the inputs, plus only the paths `extra`."""
    let_clients_forget()
    files = [h5py.File(path, "r") for path in inputs]
    try:
        with h5py.File(output, "r") as file:
            expected, got = all_objects(files[0]), all_objects(file)
            assert sorted(set(got) - set(extra)) == sorted(expected)
            assert set(extra) <= set(got)
            check_attributes(files[0].attrs, file.attrs, "/")
            for path, item in expected.items():
                assert type(got[path]) is type(item), path
                if isinstance(item, h5py.Datatype):
                    assert got[path].id == item.id, path
                    continue
                check_attributes(item.attrs, got[path].attrs, path)
                if isinstance(item, h5py.Dataset):
                    check_dataset(files, got[path], path)
                elif not extra:
                    check_links(item, got[path], path)
            if not extra:
                check_links(files[0], file, "")
                assert same_objects(got) == same_objects(expected)
    finally:
        for file in files:
            file.close()
    dumped = subprocess.run(["h5dump", "-H", str(output)], capture_output=True, text=True,
                            check=False)
    assert dumped.returncode == 0, dumped.stderr
