"""The addresses of the admin, and what a browser sends back of its forms."""

from __future__ import annotations

from typing import Any

from django.urls import reverse


def page_of(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def list_of(kind: Any) -> str:
    return reverse(f"admin:{kind._meta.app_label}_{kind._meta.model_name}_changelist")


def add_page_of(kind: Any) -> str:
    return reverse(f"admin:{kind._meta.app_label}_{kind._meta.model_name}_add")


def form_data(response: Any) -> dict[str, Any]:
    """What a browser would send back of a page, unchanged."""
    forms = [response.context["adminform"].form]
    data: dict[str, Any] = {}
    for inline in response.context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.forms]
    for form in forms:
        for bound in form:
            add_values(data, bound)
    return data


def add_values(data: dict[str, Any], bound: Any) -> None:
    context = bound.field.widget.get_context(bound.html_name, bound.value(), {})
    widget = context.get("widget") or bound.field.widget.widget.get_context(bound.html_name, bound.value(), {})["widget"]
    for part in widget.get("subwidgets", []) if "Split" in type(bound.field.widget).__name__ else [widget]:
        value = part["value"]
        if part.get("type") == "checkbox":
            if part["attrs"].get("checked"):
                data[part["name"]] = "on"
        elif value is not None:
            data[part["name"]] = value[0] if isinstance(value, list) else value


def errors_of(response: Any) -> str:
    assert response.status_code == 200, response
    return " ".join(str(error) for error in response.context["errors"])
