"""Recipes of packaging/ agree with CMake: version, options, dependencies.

scripts/check-packages runs the packagers' own tools on them. These tests only compare values that
could diverge unnoticed. Spack's recipe runs with directives that record their arguments.
"""

import ast
import pathlib
import re
import subprocess
import sys
import tomllib
import types

import pytest
from cli_tools import ROOT

PACKAGING = ROOT / "packaging"
SPACK = PACKAGING / "spack" / "spack_repo" / "tailrace" / "packages" / "tailrace" / "package.py"
CONDA = PACKAGING / "conda" / "recipe.yaml"
CONTAINERS = [PACKAGING / "container" / name for name in ("Dockerfile", "tailrace.def")]
VERSION = re.search(r"^project\(tailrace VERSION ([\d.]+)",
                    (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
CMAKE = "\n".join(path.read_text() for path in
                  [ROOT / "CMakeLists.txt", *sorted((ROOT / "cmake").glob("*.cmake"))])

#: Names of Debian's packages in Spack, conda-forge and EasyBuild.
NAMES = {
    "libdeflate-dev": ("libdeflate", "libdeflate", "libdeflate"),
    "libzstd-dev": ("zstd", "zstd", "zstd"),
    "zlib1g-dev": ("zlib-api", "zlib", "zlib"),
    "libfmt-dev": ("fmt", "fmt", "fmt"),
    "nlohmann-json3-dev": ("nlohmann-json", "nlohmann_json", "nlohmann_json"),
    "libcli11-dev": ("cli11", "cli11", "CLI11"),
    "libhdf5-dev": ("hdf5", "hdf5", "HDF5"),
    "libcairo2-dev": ("cairo", "cairo", "cairo"),
}


#: Folders of the Python packages.
PYTHON = [ROOT, ROOT / "python" / "filters"]


def pyproject(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())


def easyconfig():
    found = list((PACKAGING / "easybuild").glob("*.eb"))
    assert len(found) == 1
    return found[0]


def spack_recipe():
    """Run Spack's recipe; return {directive: [(arguments, keywords)]}, and its class."""
    told = {}

    def directive(name):
        return lambda *words, **keywords: told.setdefault(name, []).append((words, keywords))

    class CMakePackage:
        def define(self, name, value):
            return f"-D{name}={value}"

        def define_from_variant(self, name, variant):
            return f"-D{name}=variant:{variant}"

    spack = types.ModuleType("spack.package")
    for name in ("license", "version", "variant", "depends_on", "conflicts"):
        setattr(spack, name, directive(name))
    builder = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    builder.CMakePackage = CMakePackage
    modules = {"spack.package": spack, builder.__name__: builder}
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        modules[name] = types.ModuleType(name)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    names = {"__file__": str(SPACK), "__name__": "package"}
    try:
        exec(compile(SPACK.read_text(), str(SPACK), "exec"), names)  # noqa: S102
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return told, names["Tailrace"]


def spack_arguments(recipe):
    package = recipe()
    package.spec = {"hdf5": types.SimpleNamespace(prefix="/hdf5")}
    return package.cmake_args()


def easyconfig_values():
    """Return the easyconfig's assignments of literal values."""
    values = {}
    for statement in ast.parse(easyconfig().read_text()).body:
        if isinstance(statement, ast.Assign):
            try:
                values[statement.targets[0].id] = ast.literal_eval(statement.value)
            except ValueError:
                pass
    return values


def test_versions_are_one():
    told, _ = spack_recipe()
    releases = {words[0]: keywords for words, keywords in told["version"] if words[0] != "main"}
    assert releases == {VERSION: {"tag": f"v{VERSION}"}}
    assert f'version: "{VERSION}"' in CONDA.read_text()
    values = easyconfig_values()
    assert values["version"] == VERSION
    toolchain = values["toolchain"]
    assert easyconfig().name == f"tailrace-{VERSION}-{toolchain['name']}-{toolchain['version']}.eb"
    for path in [*CONTAINERS, easyconfig()]:
        named = re.findall(r"(?:tailrace[:-]|[Vv]ersion\W+)(\d+\.\d+\.\d+)", path.read_text())
        assert named and set(named) == {VERSION}, path
    for folder in PYTHON:
        assert pyproject(folder)["project"]["version"] == VERSION
    filters = ROOT / "python" / "filters" / "tailrace_filters" / "__init__.py"
    assert f'__version__ = "{VERSION}"' in filters.read_text()
    assert f"version: {VERSION}" in (ROOT / "CITATION.cff").read_text()


def test_options_are_cmakes():
    """Recipes set only options of CMake, and all of the library's own options."""
    known = set(re.findall(r"(?:option\(|set\()(TAILRACE_\w+|BUILD_SHARED_LIBS)\b", CMAKE))
    known |= {"HDF5_ROOT", "CMAKE_INSTALL_PREFIX"}
    _, recipe = spack_recipe()
    texts = {SPACK: " ".join(spack_arguments(recipe)), CONDA: CONDA.read_text(),
             easyconfig(): easyconfig().read_text()}
    texts |= {path: path.read_text() for path in CONTAINERS}
    for path, text in texts.items():
        used = set(re.findall(r"-D(\w+)=", text))
        assert used and used <= known, path
        if path not in CONTAINERS:
            assert {"TAILRACE_MPI", "TAILRACE_FORTRAN", "TAILRACE_CAIRO", "TAILRACE_PYTHON",
                    "HDF5_ROOT"} <= used, path


def test_spack_uses_its_variants():
    told, recipe = spack_recipe()
    variants = {words[0] for words, _ in told["variant"]}
    assert set(re.findall(r"variant:(\w+)", " ".join(spack_arguments(recipe)))) == variants
    for _, keywords in told["depends_on"]:
        assert set(re.findall(r"[+~](\w+)", keywords.get("when", ""))) <= variants
    assert pathlib.Path(recipe.git.removeprefix("file://")) == ROOT


def test_what_is_needed_is_named_by_all():
    needed = set(re.findall(r"tailrace_needs\(\w+ ([\w-]+)\)", CMAKE)) | {"libhdf5-dev",
                                                                         "libcairo2-dev"}
    assert needed == set(NAMES)
    told, _ = spack_recipe()
    spack = {re.match(r"[\w-]+", words[0])[0] for words, _ in told["depends_on"]}
    conda = set(re.findall(r"^    - ([\w-]+)", CONDA.read_text(), re.MULTILINE))
    values = easyconfig_values()
    easybuild = {entry[0] for entry in values["dependencies"] + values["builddependencies"]}
    for debian, names in NAMES.items():
        for name, recipe in zip(names, (spack, conda, easybuild)):
            assert name in recipe, debian
        for path in CONTAINERS:
            assert f" {debian} " in path.read_text().replace("\n", " "), path
    # CMake refuses a parallel HDF5, so each recipe requests a serial one.
    assert "~mpi" in next(words[0] for words, _ in told["depends_on"] if "hdf5" in words[0])
    assert "- hdf5 * nompi_*" in CONDA.read_text()
    assert next(entry[2] for entry in values["dependencies"] if entry[0] == "HDF5") == "-serial"


@pytest.mark.parametrize("path", [CONDA, easyconfig()], ids=["conda", "easybuild"])
def test_headers_that_recipes_look_for_are_there(path):
    headers = set(re.findall(r"tailrace/(\w+\.h(?:pp)?)\b", path.read_text()))
    assert headers and headers <= {entry.name for entry in (ROOT / "include/tailrace").iterdir()}


def test_install_page_names_what_the_set_up_installs():
    """docs/install.md, docs/python.md and both containers only use packages of scripts/setup."""
    setup = " ".join(re.findall(r"^ *packages\+?=\((.*?)\)",
                                (ROOT / "scripts" / "setup").read_text(),
                                re.DOTALL | re.MULTILINE)).split()
    for name in ("install", "python"):
        page = (ROOT / "docs" / f"{name}.md").read_text()
        listed = re.search(r"apt(?:-get)? install((?:[^\n]*\\\n)*[^\n]*)", page)[1]
        packages = set(listed.replace("\\", " ").split())
        assert len(packages) > 8 and packages <= set(setup), name
    lists = [set(re.search(r"--no-install-recommends \\\n(.*?ninja-build.*?zlib1g-dev)",
                           path.read_text(), re.DOTALL)[1].replace("\\", " ").split())
             for path in CONTAINERS]
    assert lists[0] == lists[1]
    assert lists[0] - set(setup) == {"dpkg-dev", "file"}, "what cpack itself needs"


def test_what_is_followed_of_the_install_page():
    """scripts/check-install uses the first block of docs/install.md, and its module file."""
    done = subprocess.run([ROOT / "scripts" / "check-install", "show"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "install.md").read_text()
    block = re.search(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    assert done.stdout.startswith(block) and block.startswith("sudo apt install ")
    exports = done.stdout.removeprefix(block).splitlines()
    modules = re.findall(r'^prepend_path\("(\w+)", prefix(?: \.\. "(.*)")?\)', page, re.MULTILINE)
    assert exports == [f'export {name}="/opt/tailrace{folder}${{{name}:+:${name}}}"'
                       for name, folder in modules]
    assert len(modules) == page.count("prepend_path(") == 6


def test_parts_of_the_full_run():
    """The head comment of scripts/ci-full names all parts that it runs."""
    text = (ROOT / "scripts" / "ci-full").read_text()
    parts = " ".join(re.findall(r'^all_parts\+?="(.*)"', text, re.MULTILINE)).split()
    head = re.search(r"only these:(.*?)\.", text, re.DOTALL)[1].replace("#", "").split()
    assert parts == head and set(parts) == set(re.findall(r"wants (\w+)", text))


# --- Python's wheels ------------------------------------------------------------------------------

@pytest.mark.parametrize("folder", PYTHON, ids=lambda folder: folder.name)
def test_metadata_of_wheels(folder):
    """The licence is an SPDX expression, its files exist, and URLs are omitted."""
    project = pyproject(folder)["project"]
    assert project["license"] == "BSD-3-Clause"
    assert not any(line.startswith("License ::") for line in project["classifiers"])
    for name in [*project["license-files"], project["readme"]]:
        assert (folder / name).read_text().strip(), name
    assert "urls" not in project
    # The page is published alone, so that all links must be absolute.
    links = re.findall(r"\]\(([^)]+)\)", (folder / project["readme"]).read_text())
    assert [link for link in links if "://" not in link] == []


def test_cibuildwheel_builds_what_check_wheel_tries():
    settings = pyproject(ROOT)["tool"]["cibuildwheel"]
    script, prefix = settings["before-all"].split()
    assert (ROOT / script).stat().st_mode & 0o100
    assert settings["environment"]["HDF5_ROOT"] == prefix
    tried = (ROOT / "scripts" / "check-wheel").read_text()
    assert script in tried
    for name, value in settings["config-settings"].items():
        assert re.search(rf"{re.escape(name)}={re.escape(value)}\b|{re.escape(name)}={value}'",
                         tried), name
    assert "first_file.py --others" in settings["test-command"] and "first_file.py" in tried
    assert (ROOT / "tests" / "package" / "first_file.py").exists()


def test_the_engine_shows_what_plugins_look_up():
    """If HDF5 is inside the engine, it exports the symbols that filter plug-ins look up by name."""
    shown = (ROOT / "frontends" / "python" / "engine.map").read_text()
    shown = set(re.findall(r"\b(H5\w+);", shown))
    ours = (ROOT / "trz" / "src" / "hdf5_filter" / "hdf5_calls.cpp").read_text()
    wanted = set(re.findall(r'look_up\(library, "(H5\w+)"', ours))
    assert len(wanted) > 15 and wanted <= shown
    hdf5plugin = pytest.importorskip("hdf5plugin")
    n_read = 0
    for plugin in pathlib.Path(hdf5plugin.PLUGINS_PATH).glob("*.so"):
        content = plugin.read_bytes()
        if b"init_filter" not in content:
            continue
        n_read += 1
        names = {name.decode() for name in
                 re.findall(rb"\0(H5[A-Z]?[a-z]\w+|H5\w+_g)(?=\0)", content)}
        own = ("H5Pset_zfp", "H5az", "H5_lib")  # functions and constants of the plug-in
        asked = {name for name in names if not name.startswith(own)}
        assert asked <= shown, f"{plugin.name}: {sorted(asked - shown)}"
    assert n_read >= 8
