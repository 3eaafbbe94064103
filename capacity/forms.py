"""Forms of rows that are edited together with others, and of edits that make something outdated."""

from __future__ import annotations

import hashlib

from django import forms

from quotas.forms import CatalogueForm, RowForm

from .models import Measurement, Profile
from .services.outdating import Outdating, outdating


class ConfirmedForm(CatalogueForm):
    """Before an edit makes anything outdated it says so with the numbers, and asks. Other numbers by then are asked again."""

    confirmed = forms.CharField(label="Save it all the same", required=False, widget=forms.HiddenInput)

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.errors or self.instance.pk is None:
            return
        found = outdating(self.instance)
        if found.sentence and self.cleaned_data.get("confirmed") != seen(found):
            self.fields["confirmed"].widget = forms.CheckboxInput(attrs={"value": seen(found)}, check_test=lambda value: False)
            self.add_error("confirmed", f"{found.sentence} ({'; '.join(found.changed)})")


def seen(found: Outdating) -> str:
    """What exactly was agreed to."""
    return hashlib.sha256(" ".join([*found.changed, found.sentence]).encode()).hexdigest()[:16]


class ModelWithProfilesForm(ConfirmedForm):
    belongings = ((Profile, "model"),)


class ProfileWithMeasurementsForm(ConfirmedForm):
    belongings = ((Measurement, "profile"),)


class ProfileOfModelForm(RowForm):
    """A profile in its model's table: what makes something outdated is asked on the profile's own page."""

    def _post_clean(self) -> None:
        super()._post_clean()
        if not self.errors and self.instance.pk is not None and (sentence := outdating(self.instance).sentence):
            self.add_error(None, f"{sentence} Edit the profile on its own page, which asks whether you mean it.")
