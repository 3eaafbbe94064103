"""The only writers of what people edit: forms, API and commands call these, with who did it and why.

Refusals are `ValidationError` with a dict field → sentences (`__all__` where no field is to blame).
Warnings come back as sentences.
"""

from .accounts import membership_delete, membership_save, service_account, token_create, user_delete, user_save
from .limits import quota_delete, quota_save
from .rows import Conflict, check, delete, exclusive, revision, save, version_of
from .scopes import check_parents, scope_delete, scope_save

__all__ = [
    "Conflict",
    "check",
    "check_parents",
    "delete",
    "exclusive",
    "membership_delete",
    "membership_save",
    "quota_delete",
    "quota_save",
    "revision",
    "save",
    "scope_delete",
    "scope_save",
    "service_account",
    "token_create",
    "user_delete",
    "user_save",
    "version_of",
]
