"""Every address of the site. All but health and sign-in need a login, a token or (metrics) loopback."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from . import help, ops, views

urlpatterns = [
    path("healthz", ops.healthz, name="healthz"),
    path("readyz", ops.readyz, name="readyz"),
    path("metrics", ops.metrics, name="metrics"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("password/", views.PasswordChange.as_view(), name="password_change"),
    path("password/done/", auth.PasswordChangeDoneView.as_view(), name="password_change_done"),
    path("help/", help.help_page, name="help_index"),
    path("help/files/<path:name>", help.help_file, name="help_file"),
    path("help/<path:name>/", help.help_page, name="help"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("capacity.api.urls")),
    path("", include("capacity.urls")),
]

handler400 = "llmgw_site.views.refused"
handler500 = "llmgw_site.views.broken"
