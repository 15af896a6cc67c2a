"""Where the shared data is, and the hypothesis profiles."""

import pathlib

import pytest
from hypothesis import HealthCheck, settings

SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared"

settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder of other people's pages, tweets and conformance cases; not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"no shared data beside this checkout ({SHARED.name}/)")
    return SHARED
