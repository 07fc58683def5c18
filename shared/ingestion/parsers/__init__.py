"""Parsers: files to Markdown, one module for each format. Files are untrusted, so ingestion/parser_sandbox.py
runs parsers in a process of their own.
"""
