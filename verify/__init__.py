"""Authorization attacks on a deployment, generated from its routes and its database catalogue.

The sweep creates two orgs, attacks one of them as callers without the right to it, and reports what should
have been refused; it deletes both orgs at the end.
"""
