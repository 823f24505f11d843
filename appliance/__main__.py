"""`python -m appliance`: the `rubrica` command line."""

import sys

from appliance.cli import main

sys.exit(main())
