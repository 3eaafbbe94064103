#!/usr/bin/env python
"""The command line of llmgw: `manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    if sys.argv[1:2] == ["plan"]:
        # A plan needs no settings, and starts in a fraction of the time without them.
        from capacity.plan_file import run

        sys.exit(run(sys.argv[2:]))
    if sys.argv[1:2] == ["model_target"] and any(word.partition("=")[0] == "--snapshot" for word in sys.argv[2:]):
        from capacity.target_file import run

        sys.exit(run(sys.argv[2:]))
    # before the settings are read: they make what an installation lacks
    from llmgw_site.installation import lack

    if sentence := lack(sys.argv[1:]):
        sys.exit(sentence)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_site.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
