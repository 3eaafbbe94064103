"""The examples: pools that show the main job at work in an empty installation, written and taken away whole.

Their rows are written and deleted through the services, like everyone's. Their processes (a node worker that offers units of
a class of their own, and a gateway with a made-up load) belong to the supervisor, which runs them while a flag file exists.
"""

from .llama import LLAMA
from .rows import exists, follow, remove, seed
from .shape import Example
from .simulated import MODELS, SIMULATED

EXAMPLES = {example.pool: example for example in (SIMULATED, LLAMA)}
NODE = SIMULATED.node

__all__ = ["EXAMPLES", "LLAMA", "MODELS", "NODE", "SIMULATED", "Example", "exists", "follow", "remove", "seed"]
