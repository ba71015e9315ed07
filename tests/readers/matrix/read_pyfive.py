"""pyfive, a reader in pure Python."""

import pyfive

import dataset_lines


def walk(path):
    with pyfive.File(path) as file:
        yield "/", None, lambda: file.attrs
        yield from inside(file, "")


def inside(group, prefix):
    for name in group:
        try:
            item = group[name]
        except Exception as error:
            def fail(error=error):
                raise error
            yield prefix + name, fail, None
            continue
        if hasattr(item, "keys"):
            yield from inside(item, f"{prefix}{name}/")
        elif hasattr(item, "shape"):
            yield (prefix + name, lambda item=item: item[()] if item.shape is not None else [],
                   lambda item=item: item.attrs)


dataset_lines.read_files(pyfive.__version__, walk)
