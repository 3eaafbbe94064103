from django.urls import path

from . import views

urlpatterns = [
    path("", views.now, name="now"),
]
