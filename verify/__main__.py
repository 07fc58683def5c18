"""python -m verify: proof on a deployment's own database that its orgs are kept apart."""

import sys

from verify.command import main

sys.exit(main())
