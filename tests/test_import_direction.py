"""Imports go one way: each package imports only those that stand before it."""

import sys

from tests.support.source_tree import MODULES, NAME, import_statements, imported, parsed

LOW_TO_HIGH = (
    "errors",
    "utils",
    "t2t_names",
    "sample_corpus",
    "registration",
    "hparams",
    "data",
    "model",
    "parsing",
    "metrics",
    "curve_files",
    "checkpoints",
    "problems",
    "registry",
    "model_folder",
    "decoding",
    "evaluation",
    "serving",
    "training",
    "visualization",
    "experiment",
    "addons",
    "reproduction",
    "cli",
)


def upward_imports(*, for_types: bool) -> list[tuple[str, str]]:
    """Modules, each with one that it imports from above it; the package itself stands above all."""
    return [
        (module, name)
        for module, path in MODULES.items()
        if module != NAME
        for statement in import_statements(parsed(path), for_types=for_types)
        for name in imported(statement)
        if name.split(".")[0] == NAME and rank(name) > rank(module)
    ]


def rank(module: str) -> int:
    return len(LOW_TO_HIGH) if module == NAME else LOW_TO_HIGH.index(module.split(".")[1])


def test_imports_go_down() -> None:
    faults = [f"{module} imports {name}" for module, name in upward_imports(for_types=False)]
    assert not faults, "\n".join(faults)


def floor(module: str) -> int:
    """Returns the floor of a module of decoding: words, search, engines, lines, doors, files."""
    name = module.split(".")[2]
    if name in ("translator", "loading", "trained_models"):
        return 4
    return {"search": 1, "engines": 2, "lines": 3, "files": 5}.get(name, 0)


def test_decoding_has_floors() -> None:
    own = [name for name in MODULES if name.startswith(f"{NAME}.decoding.")]
    faults = [
        f"{module} imports {name}"
        for module in own
        for statement in import_statements(parsed(MODULES[module]), for_types=False)
        for name in imported(statement)
        if name in own and floor(name) > floor(module)
    ]
    assert not faults, "\n".join(faults)


def test_the_core_knows_no_add_on() -> None:
    """Commands have their add-ons; all else finds them by name, but for names of the package itself."""
    outside = tuple(f"{NAME}.{part}" for part in ("addons", "reproduction", "cli."))
    faults = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if module != NAME and not module.startswith(outside)
        for statement in import_statements(parsed(path), for_types=True)
        for name in imported(statement)
        if name.startswith(f"{NAME}.addons")
    ]
    assert not faults, "\n".join(faults)


def test_the_package_needs_nothing_that_stands_beside_it_in_a_checkout() -> None:
    names = {
        name.split(".")[0]
        for path in MODULES.values()
        for statement in import_statements(parsed(path), for_types=True)
        for name in imported(statement)
    }
    assert not names & {"benchmarks", "examples", "tests", "tools"}


def test_models_import_only_keras_and_themselves() -> None:
    """`Transformer` alone reads hyperparameters; the table of their variants names classes."""
    allowed = {"keras", *sys.stdlib_module_names}
    own = (f"{NAME}.model", f"{NAME}.utils.keras_hooks", f"{NAME}.hparams.variants")
    faults = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if f"{module}.".startswith(f"{NAME}.model.")
        for statement in import_statements(parsed(path), for_types=True)
        for name in imported(statement)
        if name.split(".")[0] not in allowed and not name.startswith(own)
        if (module, name) != (f"{NAME}.model.transformer", f"{NAME}.hparams")
    ]
    assert not faults, "\n".join(faults)
