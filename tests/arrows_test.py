#!/usr/bin/env python3
"""Check the shape of the tree: which folder includes which, and the size of files and lines.

An arrow A -> B means that files of folder A may include headers of folder B. The allowed arrows are
those of docs/architecture.md; a new one needs a page in docs/adr/ and an entry in ARROWS below.
The test also checks:
- pure folders use no MPI, HDF5, clock, file or print;
- mpi.h and hdf5.h are included only in the folders that may use them;
- only core/environment.hpp reads the environment;
- every file of src lies in a known folder;
- the project trz includes nothing outside its folder;
- file names are unique, and files hold at most 900 lines of at most 100 columns.
"""

import collections
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve()
ROOT = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE.parents[1]

PURE = ("codec", "layout", "model", "policy", "schedule")
# Folders whose code calls HDF5. Those below src/concat contain the HDF5 calls of a concatenation.
HDF5_ROOMS = ("hdf5", "describe", "netcdf", "concat/hdf5", "concat/check")
# The project trz. Every room may include its value types; the rooms above src/codec may include its
# codecs, too.
TRZ_BASE, TRZ_CODECS = "trz/base", {"trz", "xor"}
TRZ_ARROWS = {
    TRZ_BASE: set(),
    "trz": {TRZ_BASE},
    "xor": {TRZ_BASE},
    "hdf5_filter": {TRZ_BASE, *TRZ_CODECS},
}
# A room may include itself and the rooms listed here. Lower rooms come first, so that no arrow
# points back up.
ARROWS = {
    "core": set(),
    **{folder: {"core"} for folder in PURE},
    "exec": {"core", *PURE},
    "measure": {"core", *PURE, "exec"},
    "hdf5": {"core"},
    "chunk": {"core", *PURE, "exec", "measure", "hdf5"},
    "describe": {"core", "hdf5", "chunk"},
    "netcdf": {"core", "hdf5", "describe"},
    "field": {"core", *PURE, "exec", "hdf5", "chunk", "describe", "measure"},
    "output": {"core", *PURE, "exec", "hdf5", "field"},
    "write": {"core", *PURE, "exec", "hdf5", "netcdf", "field", "output"},
    "read": {"core", *PURE, "exec", "measure", "hdf5", "chunk", "describe", "netcdf"},
    "array": {"core", *PURE, "exec", "hdf5", "chunk", "describe", "netcdf", "field", "output",
              "read"},
    "concat/hdf5": {"core", "hdf5", "describe"},
    "concat/check": {"core", "hdf5", "describe"},
    "concat": {"core", *PURE, "exec", "hdf5", "describe", "concat/hdf5", "output"},
    "verbs": {"core", *PURE, "exec", "measure", "hdf5", "chunk", "describe", "netcdf", "field",
              "output", "write", "read", "array", "concat", "concat/check", "concat/hdf5"},
}
for room, arrows in ARROWS.items():
    arrows |= {TRZ_BASE, *(TRZ_CODECS if room == "codec" or "codec" in arrows else ())}
PUBLIC = "tailrace"

SOURCES = (".c", ".cpp", ".h", ".hpp", ".py")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)

# Headers and calls that are forbidden in pure folders: their results depend on arguments only.
IMPURE_HEADERS = {
    "chrono", "ctime", "time.h", "sys/time.h", "iostream", "fstream", "print", "filesystem",
    "stdio.h", "fcntl.h", "unistd.h", "sys/stat.h", "sys/mman.h", "dlfcn.h",
}
IMPURE_CALLS = re.compile(
    r"\b(?:printf|fprintf|puts|putchar|perror|fopen|fwrite|fread|clock_gettime|gettimeofday"
    r"|std::cout|std::cerr|std::chrono|std::time|fmt::print)\b")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

MAX_LINES = 900
MAX_COLUMNS = 100
# File names that tools prescribe; they may occur more than once.
FREE_NAMES = {"CMakeLists.txt", "conftest.py", "__init__.py", "README.md", "package.json",
              "py.typed"}

problems = []


def complain(path, message):
    problems.append(f"{path.relative_to(ROOT)}: {message}")


def room_of(name):
    """Return the room of a file from its name below src: its folder, or "." if it has none.

    A subfolder belongs to its folder's room, unless it is a room of its own.
    """
    folders = name.split("/")[:-1]
    for n_folders in (2, 1):
        room = "/".join(folders[:n_folders])
        if room in ARROWS or room in TRZ_ARROWS:
            return room
    return folders[0] if folders else "."


def check_purity(path, text):
    """Check that a file of a pure folder reads nothing but its arguments, and prints nothing."""
    system = {header for kind, header in INCLUDE.findall(text) if kind == "<"}
    for header in sorted(system & IMPURE_HEADERS):
        complain(path, f"is in a pure folder and includes <{header}>")
    for call in sorted(set(IMPURE_CALLS.findall(COMMENT.sub("", text)))):
        complain(path, f"is in a pure folder and uses {call}")


def check_trz_file(path, text):
    """Check that a file of trz includes only trz's headers, and its sources only allowed rooms."""
    trz = ROOT / "trz"
    own = [trz / "src", trz / "include"]
    is_source = path.is_relative_to(trz / "src")
    room = room_of(path.relative_to(trz / "src").as_posix()) if is_source else None
    if is_source and room not in TRZ_ARROWS:
        complain(path, f"trz/src/{room} is not a room of the plan; see docs/architecture.md")
        return
    for kind, header in INCLUDE.findall(text):
        if kind == "<" and header.startswith(("mpi.h", "hdf5", "H5", PUBLIC)):
            complain(path, f"includes <{header}>; trz needs neither MPI, HDF5 nor Tailrace")
        if kind == "<":
            continue
        folders = own if is_source else [*own, trz / "tests", trz / "bench"]
        if not any((folder / header).is_file() for folder in folders):
            complain(path, f'includes "{header}", which is not a file of trz')
        target = room_of(header)
        if is_source and "/" in header and target != room and target not in TRZ_ARROWS[room]:
            complain(path, f'includes "{header}": {room} -> {target} is not an allowed arrow')
    if room in TRZ_CODECS:
        check_purity(path, text)


def check_library_file(path, text):
    room = room_of(path.relative_to(ROOT / "src").as_posix())
    if room not in ARROWS:
        complain(path, f"src/{room} is not a room of the plan; see docs/architecture.md")
        return
    for kind, header in INCLUDE.findall(text):
        if kind == "<":
            continue
        target = room_of(header)
        if target != room and target not in ARROWS[room]:
            complain(path, f'includes "{header}": {room} -> {target} is not an allowed arrow')
        if not any((ROOT / folder / header).exists() for folder in ("src", "trz/src")):
            complain(path, f'includes "{header}", which is not a file under src or trz/src')
    system = {header for kind, header in INCLUDE.findall(text) if kind == "<"}
    if "mpi.h" in system and not (room == "exec" and path.name.startswith("mpi_")):
        complain(path, "includes <mpi.h>; only src/exec/mpi_* may")
    if "H5_HAVE_PARALLEL" in text:
        complain(path, "asks whether HDF5 is parallel; its object serves both kinds of HDF5")
    if room not in HDF5_ROOMS and reaches_hdf5(path, text):
        complain(path, "includes HDF5's header, perhaps through another; only "
                 + ", ".join(HDF5_ROOMS) + " may")
    if room in PURE:
        check_purity(path, text)


def reaches_hdf5(path, text, seen=None):
    """Return True if a file includes HDF5's header, directly or through our headers."""
    seen = set() if seen is None else seen
    for kind, header in INCLUDE.findall(text):
        if kind == "<" and header.startswith(("hdf5", "H5")):
            return True
        for folder in ("src", "frontends", "trz/src"):
            target = ROOT / folder / header
            if kind == '"' and target not in seen and target.is_file():
                seen.add(target)
                if reaches_hdf5(target, target.read_text(encoding="utf-8"), seen):
                    return True
    return False


def check_outer_file(path, text, top):
    """Check a file outside src and trz: only some of these folders may include headers of others.

    Frontends may use all of src, and lab may use both. Examples use only the public headers.
    """
    for kind, header in INCLUDE.findall(text):
        beside = any((folder / header).is_file() for folder in (ROOT / "examples", path.parent))
        if top == "examples" and kind == '"' and not beside:
            complain(path, f'includes "{header}"; it sees <tailrace/...> and examples/ only')
        if top == "include" and kind == '"' and not header.startswith(PUBLIC):
            complain(path, f'includes "{header}"; a public header stands on public headers only')
        if top == "include" and header in ("mpi.h", "hdf5.h"):
            complain(path, f"includes <{header}>; the public headers need neither MPI nor HDF5")
        if top not in ("lab", "tests") and kind == '"' and (ROOT / "lab" / header).is_file():
            complain(path, f'includes "{header}" of lab; nothing but tests uses the laboratory')
    # The command line and tailrace-bench link these objects, and the latter has another HDF5. Only
    # the front ends for HDF5's own API are built for one HDF5.
    speaks_hdf5 = any(path.is_relative_to(ROOT / "frontends" / folder)
                      for folder in ("hdf5", "hdf5_serial"))
    if path.is_relative_to(ROOT / "frontends") and not speaks_hdf5 and reaches_hdf5(path, text):
        complain(path, "includes HDF5's header, perhaps through another; only src's may")


def check_environment(path, text):
    """Check that only environment.hpp calls getenv; set-uid programs must not trust variables."""
    if path.name != "environment.hpp" and re.search(r"\bgetenv\b", COMMENT.sub("", text)):
        complain(path, "calls getenv; environment_variable() of core/environment.hpp asks safely")


def check_size(path, text):
    lines = text.split("\n")
    n_lines = len(lines) - (1 if lines and lines[-1] == "" else 0)
    if n_lines > MAX_LINES:
        complain(path, f"{n_lines} lines; at most {MAX_LINES}: this room wants to be two")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            complain(path, f"line {number} has {len(line)} columns; at most {MAX_COLUMNS}")


def main():
    places = collections.defaultdict(list)
    n_files = 0
    golden = [ROOT / "tests" / "golden", ROOT / "trz" / "tests" / "golden"]
    for top in ("include", "src", "trz", "frontends", "examples", "lab", "tests", "python"):
        for path in sorted((ROOT / top).rglob("*")):
            if not path.is_file() or path.is_symlink() or "__pycache__" in path.parts:
                continue
            if path.name not in FREE_NAMES and not any(map(path.is_relative_to, golden)):
                places[path.name].append(path)
            if path.suffix not in SOURCES:
                continue
            n_files += 1
            text = path.read_text(encoding="utf-8")
            if top == "src":
                check_library_file(path, text)
            elif top == "trz":
                check_trz_file(path, text)
            else:
                check_outer_file(path, text, top)
            if top in ("include", "src", "trz", "frontends"):
                check_environment(path, text)
            check_size(path, text)
    for name, paths in places.items():
        for path in paths[1:]:
            complain(path, f"the name {name} is taken by {paths[0].relative_to(ROOT)}")
    for problem in problems:
        print(problem)
    print(f"{n_files} files read, {len(problems)} problems")
    return 1 if problems or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
