"""The only writers of what people edit: forms, API and commands call these, with who did it and why.

Refusals are `ValidationError` with a dict field → sentences (`__all__` where no field is to blame).
Warnings come back as sentences.
"""

from .accounts import service_account, token_create, user_delete, user_save
from .authority import editable_by, may_edit_below
from .limits import quota_delete, quota_save
from .rows import Conflict, check, check_delete, delete, exclusive, revision, save, sign
from .scopes import check_parents, check_place, scope_delete, scope_save
from .versions import Belonging, version_of

__all__ = [
    "Belonging",
    "Conflict",
    "check",
    "check_delete",
    "check_parents",
    "check_place",
    "delete",
    "editable_by",
    "exclusive",
    "may_edit_below",
    "quota_delete",
    "quota_save",
    "revision",
    "save",
    "scope_delete",
    "scope_save",
    "service_account",
    "sign",
    "token_create",
    "user_delete",
    "user_save",
    "version_of",
]
