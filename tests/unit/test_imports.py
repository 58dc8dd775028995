import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("chatbot", "graphs", "serving")


def imported_packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_one_way(layer: str) -> None:
    above = {*LAYERS[LAYERS.index(layer) + 1 :], "tests", "benchmarks"}
    files = list((ROOT / layer).rglob("*.py"))
    assert files
    upward = {str(file.relative_to(ROOT)): imported_packages(file) & above for file in files}
    assert not {file: names for file, names in upward.items() if names}


def test_the_check_sees_an_upward_import(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("def late():\n    from serving.http import app\n", encoding="utf-8")
    assert imported_packages(file) == {"serving"}
