"""Properties are drawn alike in every run, and a slow machine is no failure."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
