"""Forms of rows that are edited together with others."""

from __future__ import annotations

from quotas.forms import CatalogueForm

from .models import Measurement, Profile


class ModelWithProfilesForm(CatalogueForm):
    belongings = ((Profile, "model"),)


class ProfileWithMeasurementsForm(CatalogueForm):
    belongings = ((Measurement, "profile"),)
