"""The API's own description and its page, both served from here and for those who are signed in."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from quotas.api.base import ApiView


class Schema(SpectacularAPIView):
    def get_exception_handler(self):
        return ApiView.get_exception_handler(self)


# a person who is not signed in is sent to the login, and back
swagger = login_required(SpectacularSwaggerSplitView.as_view(url_name="api-schema"))
