"""Authorization attacks on a deployment, generated from its routes and catalogue.

The sweep creates two orgs, attacks one of them as callers without the right to it, and reports what should
have been refused. It deletes both orgs at the end; snapshots that it persisted stay.
"""
