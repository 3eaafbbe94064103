"""`python -m capacity.gateway --api http://127.0.0.1:8000 --token-file FILE`, without Django."""

import sys

from capacity.gateway.command import main

sys.exit(main(sys.argv[1:]))
