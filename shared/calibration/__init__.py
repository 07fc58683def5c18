"""Calibration of confidence: labelled questions, observed without a database, and the fit that is stored."""
