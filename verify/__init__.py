"""Proof on a deployment's own database that orgs are kept apart.

A run compares the catalogue with the release's, attacks one of two temporary orgs as callers without the
right to it, with requests generated from the routes and the catalogue, measures recall, and removes all that
it created.
"""
