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


def violations(root: Path) -> list[str]:
    """Every import of the tree under `root` that breaks a rule, as `file:line: why`."""
    found = []
    for path in sorted([*(root / "xla_stalloc").rglob("*.py"), *(root / "models").rglob("*.py")]):
        relative = path.relative_to(root)
        module = ("xla_stalloc", *relative.parts) if relative.parts[0] == "models" else relative.parts
        if len(module) == 2:
            continue  # xla_stalloc/__init__.py and its like gather the public names of all packages.
        package = module[1]
        for node, imported in imports(ast.parse(path.read_text(), str(path)), module[:-1]):
            if why := breaks(package, imported, at_top=node.col_offset == 0):
                found.append(f"{relative}:{node.lineno}: {why}")
    return found


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
    top, *rest = imported.split(".")
    target = rest[0] if rest and rest[0] in RANKS else ""
    if top == "xla_stalloc" and RANKS[target] > RANKS[package]:
        return f"{package} imports {imported}, which stands above it"
    # jaxlib's parser of HLO text is the one way to read it, and is loaded only when there is text.
    needs_jax = top in {"jax", "jaxlib", "flax", "optax"} and (package, top, at_top) != ("hlo", "jaxlib", False)
    if package in WITHOUT_JAX and needs_jax:
        return f"{package} imports {imported}, and must work without JAX"
    return ""


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
