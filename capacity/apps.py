from django.apps import AppConfig


class CapacityConfig(AppConfig):
    name = "capacity"
    verbose_name = "Capacity"

    def ready(self) -> None:
        # quotas checks its rows by rules that only this app knows (a `model:` target that exists)
        from .services import rules  # noqa: F401
