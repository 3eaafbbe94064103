"""How two public services' arrivals rose and fell within an hour: the shapes of the example's load.

Each number stands for 30 seconds: requests that arrived, smoothed over neighbours and scaled from 0 (the quietest half minute) to
100 (the busiest). Only the shape is here, nothing of the requests.

CONVERSATION is derived from the Azure LLM inference trace 2023, conversation service (Azure/AzurePublicDataset), licensed CC-BY
4.0: Patel et al., "Splitwise: Efficient Generative LLM Inference Using Phase Splitting", ISCA 2024. Changed: counted by half
minutes, smoothed and scaled.

LONG_CONTEXT is derived from the Mooncake conversation trace (kvcache-ai/Mooncake), licensed Apache-2.0: Qin et al., "Mooncake:
Trading More Storage for Less Computation", FAST 2025. Changed likewise.
"""

from collections.abc import Mapping

CONVERSATION = (
    16, 20, 28, 40, 46, 41, 38, 28, 22, 16, 14, 14, 14, 21, 28, 32, 29, 23, 28, 26, 32, 33, 41, 41, 40, 30, 27, 21, 22,
    18, 20, 26, 29, 30, 36, 45, 50, 43, 46, 43, 49, 52, 63, 68, 65, 62, 60, 67, 63, 66, 67, 80, 92, 98, 98, 92, 85, 83,
    83, 95, 100, 100, 84, 80, 70, 70, 69, 66, 75, 80, 91, 72, 49, 37, 35, 36, 32, 37, 39, 45, 44, 51, 37, 40, 37, 43,
    43, 42, 54, 55, 48, 30, 14, 5, 0, 1, 4, 10, 13, 14, 18, 18, 16, 13, 9, 11, 5, 10, 8, 12, 7, 5, 1,
)  # fmt: skip
LONG_CONTEXT = (
    37, 40, 43, 46, 41, 44, 40, 39, 22, 9, 0, 8, 23, 29, 24, 17, 24, 45, 62, 68, 56, 45, 41, 45, 43, 39, 34, 37, 42, 43,
    42, 29, 22, 21, 36, 56, 65, 70, 65, 68, 65, 72, 77, 81, 72, 58, 51, 54, 65, 67, 66, 64, 66, 66, 66, 72, 73, 83, 81,
    82, 60, 52, 43, 53, 59, 72, 82, 85, 83, 83, 82, 76, 68, 73, 81, 87, 92, 91, 87, 80, 84, 84, 75, 65, 72, 85, 87, 84,
    82, 79, 78, 75, 84, 84, 91, 90, 97, 92, 93, 94, 96, 100, 94, 93, 82, 77, 72, 77, 88, 84, 88, 83, 94, 96,
)  # fmt: skip

SERIES: Mapping[str, tuple[int, ...]] = {"conversation": CONVERSATION, "long_context": LONG_CONTEXT}
