"""h5dump of the path: its XML of all headers, then the values of one dataset at a time."""

import re
import subprocess
import tempfile
import xml.etree.ElementTree

import numpy as np

import dataset_lines

SPACE = ""  # The names' prefix in the first document.


def h5dump(*words):
    done = subprocess.run(["h5dump", *words], capture_output=True)
    if done.returncode != 0:
        said = re.sub(r"\s+", " ", done.stderr.decode(errors="replace"))
        raise RuntimeError(said or f"exit {done.returncode}")
    return done.stdout.decode("utf-8", "backslashreplace")


def headers_of(path):
    global SPACE
    root = xml.etree.ElementTree.fromstring(h5dump("--xml", "-m", "%.17g", "-A", path))
    SPACE = re.match(r"\{.*\}|", root.tag)[0]
    return root


def shape_of(item):
    return [int(each.get("DimSize")) for each in item.iter(f"{SPACE}Dimension")]


def unescaped(text):
    """A text of h5dump, which shows bytes beyond ASCII and zeros as octal numbers."""
    as_bytes = re.sub(rb"\\([0-7]+)", lambda octal: bytes([int(octal[1], 8) & 255]),
                      text.encode())
    return as_bytes.decode("utf-8", "backslashreplace")


def data_of(text):
    if '"' in text:
        return np.array([unescaped(each) for each in re.findall(r'"((?:[^"\\]|\\.)*)"', text)])
    words = text.replace(",", " ").split()
    try:
        return np.array([float(each) for each in words])
    except ValueError:  # Names of an enumeration's values.
        return np.array(words)


def attributes_of(item):
    found = {}
    for each in item.findall(f"{SPACE}Attribute"):
        if dataset_lines.ATTRIBUTES.match(each.get("Name")):
            found[each.get("Name")] = data_of(next(each.iter(f"{SPACE}DataFromFile")).text or "")
    return found


def values_of(path, name, shape, digits):
    with tempfile.NamedTemporaryFile() as out:
        h5dump("-y", "-w", "0", *digits, "-o", out.name, "-d", name, path)
        return data_of(out.read().decode("utf-8", "backslashreplace")).reshape(shape)


def walk(path):
    root = headers_of(path)
    yield "/", None, lambda: attributes_of(root.find(f"{SPACE}RootGroup"))
    for dataset in root.iter(f"{SPACE}Dataset"):
        name = dataset.get("H5Path")
        shape = shape_of(dataset.find(f"{SPACE}Dataspace"))
        # The format of -m is for float and double; h5dump uses it for long double, too.
        float_type = next(dataset.iter(f"{SPACE}FloatType"), {})
        digits = () if float_type.get("Size") == "16" else ("-m", "%.17g")
        yield (name.strip("/"), lambda of=(name, shape, digits): values_of(path, *of),
               lambda dataset=dataset: attributes_of(dataset))


version = subprocess.run(["h5dump", "--version"], capture_output=True, text=True).stdout
dataset_lines.read_files(version.strip().rpartition(" ")[2], walk)
