"""Programs that a test cannot do without."""

import shutil

import pytest


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip a test where one of these programs is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"{', '.join(missing)} MISSING (deploy/setup --test): not run"
    )
