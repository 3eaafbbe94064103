"""`python -m llmgw_site.supervisor`: what `make run` starts."""

from __future__ import annotations

import contextlib
import os
import sys

from environs import EnvError

from capacity.command_line import OneLineParser

from .options import add_arguments


def main() -> int:
    parser = OneLineParser(prog="manage.py up", description="Start everything, and end it on Ctrl-C.")
    add_arguments(parser)
    options = parser.parse_args()
    # state holds passwords and keys: its files are the owner's alone, whoever writes them
    os.umask(0o077)
    try:
        from llmgw_site import env
    except EnvError as error:
        sys.stderr.write(f"A setting is wrong: {error}\n")
        return 1
    from .children import Site
    from .supervisor import absolute, run

    folder = absolute(env.VAR)
    os.environ["LLMGW_VAR"] = str(folder)
    site = Site(folder=folder, root=env.BASE_DIR, host=options.host, port=options.port)
    return run(site, demo=options.demo, llama=options.llama, redis_url=env.REDIS_URL, hosts=env.HOSTS, say=_say)


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # a terminal that was closed must not keep us from ending our children
        sys.stdout.write(f"{sentence}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
