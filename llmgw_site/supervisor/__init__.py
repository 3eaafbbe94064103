"""One process that starts, watches and ends everything `make run` consists of.

It knows no database and loads no Django: `python -m llmgw_site.supervisor`, or `manage.py up`, which becomes it.
"""
