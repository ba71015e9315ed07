"""Output of the Python scripts of the reader matrix: one JSON line for each dataset.

A line has the file, the dataset's name, its shape, and its values. Numbers are given by their sum
and their position-weighted sum as f8, texts as they are. Attributes are in the same line. A dataset
that cannot be read has the error's text instead. The last line of each file reports that its end
was reached. If it is missing, the process crashed there.
"""

import json
import re
import sys

import numpy as np

#: Names of attributes that the matrix compares: those of its own files.
ATTRIBUTES = re.compile(r"^(title|units|a\d\d)$")


def say(**facts):
    print(json.dumps(facts), flush=True)


def text_of(value):
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "backslashreplace")
    return str(value).rstrip("\0")


def checksum(values):
    """Shape and sums of numbers in the order of C, or the texts."""
    values = np.asarray(values)
    shape = list(values.shape)
    if values.dtype.kind in "SUOT":
        return {"shape": shape, "text": "|".join(text_of(each) for each in values.ravel())}
    if values.dtype.kind not in "iufb":
        raise TypeError(f"values of type {values.dtype}")
    flat = values.ravel().astype("f8")
    weights = np.arange(1, flat.size + 1)
    return {"shape": shape, "sum": float(flat.sum()), "weighted": float((flat * weights).sum())}


def plain(value):
    """An attribute's value as a text, or as a list of numbers."""
    array = np.asarray(value)
    if array.dtype.kind in "SUOT":
        return "|".join(text_of(each) for each in array.ravel())
    return [float(each) for each in array.ravel()]


def attributes_of(attributes):
    """`attributes`: a mapping, of which only the names of the matrix are read."""
    return {name: plain(attributes[name]) for name in attributes if ATTRIBUTES.match(name)}


def error_text(error):
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def read_files(version, walk):
    """Answer `--version`, or read the files of the command line.

    `walk` takes a path and yields tuples: a name, a function that returns values, and a function
    that returns a mapping of attributes. The last is None if the reader has no attributes. A name
    that ends with a slash is a group.
    """
    if sys.argv[1:] == ["--version"]:
        print(version)
        return
    for path in sys.argv[1:]:
        try:
            for name, values, attributes in walk(path):
                line = {}
                try:
                    if values is not None:
                        line |= checksum(values())
                    if attributes is not None:
                        line["attributes"] = attributes_of(attributes())
                except Exception as error:
                    line = {"error": error_text(error)}
                say(file=path, name=name, **line)
        except Exception as error:
            say(file=path, name="", error=error_text(error))
        say(file=path, end=True)
