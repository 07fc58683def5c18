"""Validators of wire models, which must work alike with every version of Python."""

from importlib import import_module
from typing import Any

from pydantic import BaseModel

from functions.server import SLUGS


def test_no_validator_is_a_builtin_whose_signature_differs_between_versions():
    """str.format has a signature since Python 3.13, and pydantic takes it for one with two arguments."""
    for module in SLUGS.values():
        import_module(module)
    models = [model for model in _subclasses(BaseModel) if model.__module__.startswith("shared.")]
    assert len(models) > 100
    validators = {
        (model.__name__, name, part.func)
        for model in models
        for name, field in model.model_fields.items()
        for part in field.metadata
        if hasattr(part, "func")
    }
    assert validators
    assert [row for row in validators if type(row[2]).__name__ == "builtin_function_or_method"] == []


def _subclasses(cls: type[Any]) -> set[type[Any]]:
    return {cls}.union(*map(_subclasses, cls.__subclasses__()))
