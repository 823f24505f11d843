"""`python -m appliance`: the `rubrica` command line."""

import sys

from appliance.commands import main

sys.exit(main())
