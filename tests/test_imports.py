"""Import rules that the contracts in pyproject.toml do not express, read from the syntax trees of all modules."""

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "parnassus"


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module, by dotted name without the package's."""
    paths = {path: path.relative_to(PACKAGE).with_suffix("").parts for path in sorted(PACKAGE.rglob("*.py"))}
    return {".".join(parts): ast.parse(path.read_text(encoding="utf-8")) for path, parts in paths.items()}


@cache
def imports(tree: ast.Module) -> set[str]:
    """The dotted names that a module imports, anywhere in it."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_no_module_imports_from_an_experiment() -> None:
    """What two experiments share belongs in a method module."""
    offenders = [
        f"{name} imports {each}"
        for name, tree in trees().items()
        for each in sorted(imports(tree))
        if re.match(r"parnassus\.\w+\.experiments\b", each)
    ]
    assert not offenders, "\n".join(offenders)


def test_no_room_imports_the_claims_or_probes_of_another() -> None:
    """Claims and probes may share code within their room only."""
    offenders = [
        f"{name} imports {each}"
        for name, tree in trees().items()
        for each in sorted(imports(tree))
        if (found := re.match(r"parnassus\.(\w+)\.(?:claims|probes)\b", each)) and found[1] != name.split(".")[0]
    ]
    assert not offenders, "\n".join(offenders)


def test_methods_import_none_of_the_parts_that_need_the_spine() -> None:
    """import-linter allows these parts to import the spine, so it does not see what methods import through them."""
    parts = r"(?:claims|probes|experiments|figures|commands)\b"
    offenders = [
        f"{name} imports {each}"
        for name, tree in trees().items()
        if not re.match(rf"\w+\.{parts}|estimators\.", name)
        for each in sorted(imports(tree))
        if re.match(rf"parnassus\.(?!cli\b|lab\b)\w+\.{parts}", each)
    ]
    assert not offenders, "\n".join(offenders)


def test_private_names_of_torch_stand_in_fast_only() -> None:
    """`torch._foreach_*` is documented and thus allowed everywhere."""
    offenders = [
        f"{name}: {each}"
        for name, tree in trees().items()
        if "fast" not in name.split(".")
        for each in sorted(private_imports(tree) | private_attributes(tree))
        if not each.startswith("torch._foreach_")
    ]
    assert not offenders, "\n".join(offenders)


def private_imports(tree: ast.Module) -> set[str]:
    return {each for each in imports(tree) if re.match(r"torch\.(?:.*\.)?_", each)}


def private_attributes(tree: ast.Module) -> set[str]:
    """Private attributes that this package does not define, such as torch._C and `module._forward_hooks`."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)]
    return {ast.unparse(node) for node in attributes if node.attr not in own_names()}


@cache
def own_names() -> set[str]:
    """Private names that the package defines, and documented ones of the standard library."""
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    stored = [node for node in nodes if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return functions | {node.id if isinstance(node, ast.Name) else node.attr for node in stored} | {"_exit", "_replace"}
