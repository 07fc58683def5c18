"""Structured logs, OpenTelemetry export, request metrics, usage counters. Imports tracing and clients."""
