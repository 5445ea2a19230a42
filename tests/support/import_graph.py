"""The contracts on imports in pyproject.toml, checked by import-linter: `python -m tests.support.import_graph`.

import-linter reads packages, and today's designs, spec/isr_model.py and those beside it, are modules on their own.
So a temporary folder shows each as a package of its name, whose `__init__.py` is a link to the module.
"""

import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

import grimp
from importlinter import api, cli
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract

TOP = Path(__file__).resolve().parents[2]
MODULES = tuple(TOP / "spec" / name for name in ("isr_model.py", "kraft_model.py", "controller_model.py"))
PROJECT = str(TOP / "pyproject.toml")
KINDS: dict[str, type[Contract]] = {
    kind.type_name: kind for kind in (LayersContract, ForbiddenContract, ProtectedContract, AcyclicSiblingsContract)
}


@contextmanager
def modules_as_packages() -> Generator[None, None, None]:
    """Where the library looks for packages, it finds today's designs, too, and none that is loaded already."""
    loaded = {name: sys.modules.pop(name) for name in root_packages() if name in sys.modules}
    path = sys.path[:]
    with tempfile.TemporaryDirectory(prefix="insync-imports-") as folder:
        for module in MODULES:
            package = Path(folder) / module.stem
            package.mkdir()
            (package / "__init__.py").symlink_to(module)
        roots = {str(file.parents[1]) for file in TOP.glob("*/*/__init__.py")}
        sys.path[:0] = [folder, *sorted(roots)]
        try:
            yield
        finally:
            sys.path[:] = path
            sys.modules.update(loaded)


def root_packages() -> list[str]:
    """The packages, and modules of the model, that the contracts are about."""
    return cast("list[str]", told()["session_options"]["root_packages"])


def contracts() -> dict[str, Contract]:
    """The contracts by their `id`."""
    session = told()["session_options"]
    return {
        options["id"]: KINDS[options["type"]](options["name"], session, options)
        for options in told()["contracts_options"]
    }


class Told(TypedDict):
    """What pyproject.toml says to import-linter."""

    session_options: dict[str, object]
    contracts_options: list[dict[str, str]]


@cache
def told() -> Told:
    return cast("Callable[[str], Told]", vars(api)["read_configuration"])(PROJECT)


@cache
def graph() -> grimp.ImportGraph:
    """Who imports whom, wherever in a file, also for type checkers alone."""
    with modules_as_packages():
        return grimp.build_graph(*root_packages(), cache_dir=None)


def kept(contract: Contract, *planted: tuple[str, str]) -> bool:
    """Whether the tree, with these imports (importer, imported) added, keeps a contract."""
    changed = deepcopy(graph())  # a check takes out what the contract says to ignore
    for importer, imported in planted:
        changed.add_import(importer=importer, imported=imported)
    return contract.check(changed, verbose=False).kept


if __name__ == "__main__":
    with modules_as_packages():
        sys.exit(cli.lint_imports(PROJECT, cache_dir=None, no_logo=True))
