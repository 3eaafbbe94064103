"""What is sent here has an end: a body beyond what an import reads is refused before anything of it is written down."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler

from capacity.importing import LARGEST_UPLOAD

ABOUT_IT: Final = 2**20
"""Of a body for what is no file: the form's fields and the lines between its parts."""


class WithinLimits(FileUploadHandler):
    """Stands before the handlers that keep files."""

    def handle_raw_input(
        self, input_data: Any, META: dict[str, Any], content_length: int, boundary: bytes, encoding: str | None = None
    ) -> None:
        if content_length > LARGEST_UPLOAD + ABOUT_IT:
            raise RequestDataTooBig(f"At most {LARGEST_UPLOAD // 2**20} MB are read at once.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> UploadedFile | None:
        return None
