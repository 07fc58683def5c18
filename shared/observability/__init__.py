"""Structured logs, OpenTelemetry export, usage counters."""
