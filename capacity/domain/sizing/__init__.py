"""What does it take to serve that much? `target` answers over a virtual snapshot with the reconciler's own rules."""

from capacity.domain.sizing.document import target_document, target_table
from capacity.domain.sizing.question import Question, WrongQuestion, question_of
from capacity.domain.sizing.target import target
from capacity.domain.sizing.types import EXITS, Answer
from capacity.domain.sizing.withheld import withheld

__all__ = ["EXITS", "Answer", "Question", "WrongQuestion", "question_of", "target", "target_document", "target_table", "withheld"]
