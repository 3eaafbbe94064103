"""The one task that a host's queue carries. It names a template and checked values, never an argument list."""

from celery import shared_task

from capacity.node.serving import apply_document


@shared_task(name="capacity.node_tasks.apply_order", ignore_result=True)
def apply_order(order: dict) -> dict:
    return apply_document(order)
