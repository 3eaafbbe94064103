from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "llmgw_site"
    verbose_name = "llmgw"

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers them)
