"""ncdump of the path; this script parses its text (CDL): the header, then one variable at a
time."""

import re
import subprocess

import dataset_lines

#: A quoted text, or ncdump's output for an empty or missing one.
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|\bNIL\b|(?<=\s)_(?=[\s,]|$)')
#: Values that ncdump prints as _ if no _FillValue attribute overrides them (netcdf.h).
FILL_VALUES = {"byte": -127, "short": -32767, "int": -2147483647, "float": 9.9692099683868690e+36,
               "double": 9.9692099683868690e+36, "ubyte": 255, "ushort": 65535,
               "uint": 4294967295, "int64": -9223372036854775806, "uint64": 18446744073709551614}


def ncdump(*words):
    done = subprocess.run(["ncdump", "-p", "9,17", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"exit {done.returncode}")
    return done.stdout


def value_of(text):
    """An attribute's value, or a variable's, as a text or a list of numbers."""
    if '"' in text:
        return ["" if each == "_" else each.strip('"') for each in TEXT.findall(text)]
    return [number_of(each) for each in re.sub(r"[{},]", " ", text).split()]


def number_of(token):
    """A number without CDL's type suffix, such as 1b, 2s, 3ull, 1.5f, NaNf."""
    return float(re.sub(r"(?i)(?<=\d)[a-z]*$|(?<=nan)f$|(?<=infinity)f$", "", token))


def header_of(path):
    """Lengths of dimensions; shapes and attributes of variables, by their paths."""
    lengths, variables, attributes, place = {}, {}, {"/": {}}, []
    for line in ncdump("-h", path).splitlines():
        line = line.strip().removesuffix(";").strip()
        if found := re.match(r"group: (\S+) \{", line):
            place.append(found[1])
        elif re.match(r"\} // group ", line):
            place.pop()
        elif found := re.match(r"(\w+) = (?:UNLIMITED ; // \()?(\d+)", line):
            lengths["/".join([*place, found[1]])] = int(found[2])
        elif found := re.match(r"(?:string )?(\w*):(\w+) = (.*)$", line):
            value = value_of(found[3].split(" ;")[0])
            name = "/".join([*place, found[1]]) if found[1] else "/"
            text = value and isinstance(value[0], str)
            attributes.setdefault(name, {})[found[2]] = "|".join(value) if text else value
        elif found := re.match(r"(u?\w+) (\w+)(?:\((.*)\))?$", line):
            names = [each.strip() for each in (found[3] or "").split(",") if each.strip()]
            shape = [length_of(lengths, place, each) for each in names]
            variables["/".join([*place, found[2]])] = (found[1], shape)
    return variables, attributes


def length_of(lengths, place, name):
    """The length of the nearest dimension of that name, from the innermost group outwards."""
    for depth in range(len(place), -1, -1):
        path = "/".join([*place[:depth], name])
        if path in lengths:
            return lengths[path]
    raise KeyError(name)


def values_of(path, name, kind, shape, fill):
    if 0 in shape:  # ncdump prints nothing for it.
        return dataset_lines.np.zeros(shape)
    text = ncdump("-v", "/" + name if "/" in name else name, path)
    text = text[text.index("data:"):]
    own = re.escape(name.rpartition("/")[2])
    text = re.search(rf"^\s*{own} =(.*?) ;\s*$", text, re.M | re.S)[1]
    if kind not in ("char", "string"):
        text = re.sub(r"(?<![^\s,{])_(?![^\s,}])", repr(fill), text)
    values = value_of(text)
    if kind == "char":
        # CDL has no zeros at a text's end, and one text per row.
        values = [each for row in values for each in row.ljust(shape[-1], "\0")]
    return dataset_lines.np.array(values).reshape(shape)


def walk(path):
    variables, attributes = header_of(path)
    yield "/", None, lambda: attributes["/"]
    for name, (kind, shape) in variables.items():
        own = attributes.get(name, {})
        fill = own.get("_FillValue", [FILL_VALUES.get(kind)])[0]
        yield (name, lambda of=(name, kind, shape, fill): values_of(path, *of),
               lambda own=own: own)


usage = subprocess.run(["ncdump"], capture_output=True, text=True)
found = re.search(r"version (\S+)", usage.stdout + usage.stderr)
dataset_lines.read_files(found[1].strip('"') if found else "", walk)
