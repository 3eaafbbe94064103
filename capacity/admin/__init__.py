"""The admin of what runs: the catalogue to edit, the record to look at."""

from . import catalogue as catalogue
from . import record as record
