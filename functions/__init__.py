"""The deployed functions: one stateless handler a file, served under its own routes."""

import gc

# Imports create objects that live as long as the process. A garbage collection during the imports frees
# nothing and takes a fifth of a cold start. lambda_handler (shared/api/app.py) and functions/server.py enable
# collections again.
gc.disable()
