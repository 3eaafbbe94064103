"""`python -m capacity.llama`: the engine."""

import sys

from capacity.llama.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
