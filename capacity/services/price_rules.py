"""Rules of prices: how a currency is written, names of products, and what keeps costs from being added up."""

from __future__ import annotations

from quotas.services.rows import Findings, rule_for

from ..domain.products import canonical_class
from ..models import Price


@rule_for(Price)
def write_currencies_alike(price: Price, stored: Price | None, findings: Findings) -> None:
    """eur and EUR are one; a sign such as € stays as it is."""
    price.currency = price.currency.strip().upper()
    if not price.currency:
        findings.refuse("currency", "Say the currency, such as EUR.")
    elif not price.currency.isprintable():
        findings.refuse("currency", "A currency is a short word or sign, such as EUR.")


@rule_for(Price)
def warn_of_prices_that_do_not_add_up(price: Price, stored: Price | None, findings: Findings) -> None:
    others = Price.objects.filter(pool_id=price.pool_id).exclude(pk=price.pk).exclude(resource=price.resource)
    found = sorted(set(others.values_list("currency", flat=True)) - {price.currency})
    if found:
        findings.warn(
            f"Prices of {price.pool} are in {', '.join([*found, price.currency])}: costs are only said where all are in one."
        )


@rule_for(Price)
def warn_of_another_name_of_a_product(price: Price, stored: Price | None, findings: Findings) -> None:
    if (stored is None or stored.resource != price.resource) and (canonical := canonical_class(price.resource)):
        findings.warn(
            f"Hosts report that product as {canonical}: what is written as {price.resource} is another class to the plan."
        )
