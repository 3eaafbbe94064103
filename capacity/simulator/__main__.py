"""`python -m capacity.simulator --port 4001 --model chat --capacity 8`, without Django."""

import sys

from capacity.simulator.command import main

sys.exit(main(sys.argv[1:]))
