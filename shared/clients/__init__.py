"""Clients of everything outside the process: HTTP with deadlines, SSRF guard, PostgREST, Storage, object
store."""
