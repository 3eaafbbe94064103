from django.http import HttpRequest, HttpResponse


def now(request: HttpRequest) -> HttpResponse:
    return HttpResponse("llmgw")
