"""Imports run downward only, and the planning core knows nothing of JAX."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORDER = ("_core", "hlo", "lifetimes", "packing", "scheduling", "plan", "report", "inject", "sharding", "models")
"""The packages, lowest first; the public names of `xla_stalloc` itself stand above them, and `cli` at the top."""
RANKS = {name: rank for rank, name in enumerate((*ORDER, "", "cli"))}
WITHOUT_JAX = {"hlo", "lifetimes", "packing", "scheduling", "plan"}


def sources(root: Path) -> Iterator[tuple[Path, str, ast.stmt, str]]:
    """Every import under `root` as file, package, statement and dotted name; '' for `xla_stalloc/*.py`."""
    for path in sorted([*(root / "xla_stalloc").rglob("*.py"), *(root / "models").rglob("*.py")]):
        relative = path.relative_to(root)
        module = ("xla_stalloc", *relative.parts) if relative.parts[0] == "models" else relative.parts
        package = module[1] if len(module) > 2 else ""
        for node, imported in imports(ast.parse(path.read_text(), str(path)), module[:-1]):
            yield relative, package, node, imported


def violations(root: Path) -> list[str]:
    """Every import of the tree under `root` that breaks a rule, as `file:line: why`."""
    return [
        f"{file}:{node.lineno}: {why}"
        for file, package, node, imported in sources(root)
        if (why := breaks(package, imported, at_top=node.col_offset == 0))
    ]


def imports(tree: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[ast.stmt, str]]:
    """Every import statement with each dotted name that it may bring in; relative ones are resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join((*base, *filter(None, [node.module])))
            yield from ((node, f"{prefix}.{alias.name}") for alias in node.names)


def breaks(package: str, imported: str, at_top: bool) -> str:
    """Why `package` may not import the dotted name `imported`, or an empty string."""
    top = imported.partition(".")[0]
    target = package_of(imported)
    if target is not None and RANKS[target] > RANKS[package]:
        return f"{package} imports {imported}, which stands above it"
    # jaxlib's parser of HLO text is the one way to read it, and is loaded only when there is text.
    needs_jax = top in {"jax", "jaxlib", "flax", "optax"} and (package, top, at_top) != ("hlo", "jaxlib", False)
    if package in WITHOUT_JAX and needs_jax:
        return f"{package} imports {imported}, and must work without JAX"
    return ""


def package_of(imported: str) -> str | None:
    """The package of the project that a dotted name lies in, or None; '' for `xla_stalloc` itself."""
    top, *rest = imported.split(".")
    if top != "xla_stalloc":
        return None
    return rest[0] if rest and rest[0] in RANKS else ""


def bazel_deps(text: str) -> dict[str, set[str]]:
    """The internal `deps` of every library in a BUILD file, which is Python as far as `ast` is concerned."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "py_library":
            values = {keyword.arg: keyword.value for keyword in node.keywords}
            labels = [dep.value for dep in values["deps"].elts if isinstance(dep, ast.Constant)]  # type: ignore[attr-defined]
            found[values["name"].value] = {label.removeprefix(":") for label in labels}  # type: ignore[attr-defined]
    return found


def test_bazel_has_the_same_packages_and_imports() -> None:
    expected: dict[str, set[str]] = {path.parent.name: set() for path in ROOT.glob("xla_stalloc/*/__init__.py")}
    expected |= {"models": set(), "xla_stalloc": set()}
    for _, package, _, imported in sources(ROOT):
        target = package_of(imported)
        if target is not None and target != package:
            expected[package or "xla_stalloc"].add(target or "xla_stalloc")
    assert bazel_deps((ROOT / "BUILD").read_text()) == expected


def test_the_project_keeps_the_rules() -> None:
    assert violations(ROOT) == []


def test_every_package_has_a_place_in_the_order() -> None:
    packages = {path.parent.name for path in (ROOT / "xla_stalloc").glob("*/__init__.py")}
    assert packages <= set(RANKS), "give the new package its place in ORDER"


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("xla_stalloc/hlo/a.py", "from xla_stalloc.plan import record", "stands above"),
        ("xla_stalloc/hlo/a.py", "from ..plan import record", "stands above"),
        ("xla_stalloc/plan/deep/a.py", "from xla_stalloc import inject", "stands above"),
        ("xla_stalloc/inject/a.py", "def f():\n    import xla_stalloc.cli.main", "stands above"),
        ("xla_stalloc/inject/a.py", "import xla_stalloc as stalloc", "stands above"),
        ("models/a.py", "from xla_stalloc.cli import train", "stands above"),
        ("xla_stalloc/scheduling/a.py", "import jax.numpy as jnp", "without JAX"),
        ("xla_stalloc/plan/a.py", "def f():\n    from jaxlib import xla_client", "without JAX"),
        ("xla_stalloc/hlo/a.py", "import jaxlib", "without JAX"),
    ],
)
def test_a_bad_tree_is_found(tmp_path: Path, file: str, text: str, why: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{file}:")
    assert why in found


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("xla_stalloc/hlo/a.py", "def f():\n    from jaxlib import xla_client"),
        ("xla_stalloc/plan/a.py", "from xla_stalloc.hlo import module\nfrom . import record"),
        ("xla_stalloc/cli/a.py", "import xla_stalloc as stalloc\nfrom xla_stalloc import models"),
        ("models/a.py", "from .errors import ModelError\nimport jax"),
    ],
)
def test_a_good_tree_passes(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert violations(tmp_path) == []
