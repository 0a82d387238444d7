"""The model without weights and the translator that the tests of distillation have too."""

from tests.distillation.conftest import data_dir, teacher, translator  # noqa: F401  fixtures
