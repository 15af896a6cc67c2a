"""The style of the house, as far as a machine can see it."""

import ast
import itertools
import pathlib
import statistics

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("topology", "agents", "tables")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# Arrows point one way: nouns know nobody, tables know nouns, agents know both. These files join them.
JOINERS = {
    "wiring", "stores", "service", "run", "feeding", "views", "worker", "describe", "cli", "commands",
}  # fmt: skip
# Clients of the outside are imported in one place only.
CLIENTS = {
    "aiohttp": ("agents/clients/", "topology/views/"),  # the views speak HTTP to their own worker's users
    "sqlite3": ("agents/clients/",),
    "obstore": ("agents/clients/",),
}
FUNCTION_LINES_MAX, FUNCTION_LINES_P90 = 60, 25
MODULE_LINES_MAX, MODULE_LINES_P90 = 400, 300


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def functions_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = bool(ast.get_docstring(node))
            start = node.body[0].end_lineno if documented else node.lineno
            yield node, node.end_lineno - start, documented


def is_joiner(path):
    inside = path.relative_to(ROOT).with_suffix("").parts
    return inside[0] == "topology" and len(inside) > 1 and inside[1] in JOINERS


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    allowed = {"topology": {"topology"}, "tables": {"topology", "tables"}, "agents": set(PACKAGES)}[package]
    if is_joiner(path):
        allowed = set(PACKAGES)
    ours = {name for name in imports_of(path) if name.partition(".")[0] in PACKAGES}
    assert {name for name in ours if name.partition(".")[0] not in allowed} == set()
    if not is_joiner(path):
        joined = {f"topology.{joiner}" for joiner in JOINERS}
        assert {name for name in ours if name in joined} == set()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_outside_clients_are_imported_in_one_place(path):
    imported = {name.partition(".")[0] for name in imports_of(path)}
    for client, homes in CLIENTS.items():
        if not name_of(path).startswith(homes):
            assert client not in imported


def test_no_function_is_long():
    lengths = []
    for path in FILES:
        for node, lines, _ in functions_of(path):
            assert lines <= FUNCTION_LINES_MAX, f"{name_of(path)}:{node.lineno} {node.name} has {lines} lines"
            lengths.append(lines)
    assert statistics.quantiles(lengths, n=10)[-1] <= FUNCTION_LINES_P90


def test_no_module_is_long():
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES_MAX} == {}
    assert statistics.quantiles(lengths.values(), n=10)[-1] <= MODULE_LINES_P90


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_module_and_every_public_function_says_what_it_is_for(path):
    if path.stem == "__init__" and not path.read_text().strip():
        pytest.fail(f"{name_of(path)}: a package's docstring lists its rooms in flow order")
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), f"{name_of(path)} has no docstring"
    public = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
    silent = [node.name for node in public if not node.name.startswith("_") and not ast.get_docstring(node)]
    assert silent == []


def test_every_agent_module_is_wired():
    wired = (ROOT / "topology" / "wiring.py").read_text()
    stages = {path.stem for path in (ROOT / "agents").glob("*.py")} - {"__init__", "pump", "batches"}
    assert {stage for stage in stages if f"{stage}.attach(" not in wired} == set()


def test_nothing_is_left_unfinished():
    markers = ("TODO", "FIXME", "XXX", "NotImplementedError")
    allowed = {("topology/commits.py", "NotImplementedError"), ("topology/embedded.py", "NotImplementedError")}
    left = [
        (name_of(path), marker)
        for path, marker in itertools.product(FILES, markers)
        if marker in path.read_text() and (name_of(path), marker) not in allowed
    ]
    assert left == []


def test_every_lint_exception_has_its_reason():
    silent = [
        f"{name_of(path)}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for mark in ("# noqa", "# type: ignore")
        if mark in line and " - " not in line.partition(mark)[2] and "  # " not in line.partition(mark)[2]
    ]
    assert silent == []


def test_the_packages_come_from_this_checkout():
    """`agents` and `tables` are also import names of other projects: never install beside them."""
    import agents  # noqa: PLC0415
    import tables  # noqa: PLC0415
    import topology  # noqa: PLC0415

    for package in (agents, tables, topology):
        assert pathlib.Path(package.__file__).is_relative_to(ROOT)


def test_the_package_list_is_complete():
    listed = (ROOT / "pyproject.toml").read_text()
    packages = {path.parent.relative_to(ROOT).as_posix().replace("/", ".") for path in FILES}
    assert {package for package in packages if f'"{package}"' not in listed} == set()


def test_no_registry_host_and_no_machine_path_is_named():
    for path in (*FILES, ROOT / "constraints.txt", ROOT / "Makefile", ROOT / "README.md", ROOT / "pyproject.toml"):
        text = path.read_text()
        assert "index-url" not in text
        assert "/root/" not in text
        assert "/work/" not in text
