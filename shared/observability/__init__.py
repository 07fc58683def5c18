"""Request tracing, structured logs, OpenTelemetry export, usage counters. Imports text and clients."""
