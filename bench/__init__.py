"""Quality and speed, measured. Results are written to bench/results by the commands that measure them."""
