"""Structured logs, OpenTelemetry export, request metrics, usage counters."""
