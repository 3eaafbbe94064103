"""The right reading of the shared files of GuideLLM and llama.cpp's tools, and of what is no result file, by their INDEX.md.

(tool, [(in flight, output tokens/s) of each stage]), or words of the refusal.
"""

GUIDELLM = {
    "guidellm/kaito_a100_benchmark-phi4-p1_handmade.csv": "made by hand",
    "guidellm/kaito_a10_benchmark-phi4-p1.csv": ("GuideLLM", [(4.15359, 189.245)]),
    "guidellm/kaito_a10_benchmark-phi4-p16.csv": ("GuideLLM", [(348.57, 1739.23)]),
    "guidellm/kaito_a10_benchmark-phi4-p4.csv": ("GuideLLM", [(20.2804, 750.425)]),
    "guidellm/kaito_a10_benchmark-phi4-p8.csv": ("GuideLLM", [(84.8665, 1465.32)]),
    "guidellm/made_v0.2.1_sweep.json": (
        "GuideLLM",
        [(0.982403, 133.994), (4.78872, 470.958), (10.1404, 767.67), (20.2005, 1050.23)],
    ),
    "guidellm/made_v0.4.0_concurrent.json": (
        "GuideLLM",
        [(1.96681, 243.855), (7.80369, 688.44), (15.3412, 822.967), (30.0927, 860.723), (50.673, 726.774)],
    ),
    "guidellm/made_v0.5.4_concurrent.csv": ("GuideLLM", [(1.98161, 184.847)]),
    "guidellm/made_v0.5.4_concurrent_warmup10pct.json": (
        "GuideLLM",
        [(1.98161, 184.847), (7.70797, 646.848), (15.3159, 714.611), (30.1109, 877.359), (53.7912, 915.248)],
    ),
    "guidellm/made_v0.8.1_concurrent.json": (
        "GuideLLM",
        [(1.88912, 208), (7.65985, 575.375), (14.8413, 796), (29.0512, 971.75), (53.8388, 960)],
    ),
    "guidellm/v0.2-0.3_benchmarks_stripped.json": ("GuideLLM", [(0.997763, 198.133)]),
    "guidellm/v0.3_async_constant10.json": ("GuideLLM", [(22.7831, 1251.54)]),
    "guidellm/v0.3_parsed_results.json": "mislabelled units",
    "local-guidellm081-smollm2-concurrent-1-2-4-8.csv": (
        "GuideLLM",
        [(0.991177, 38.4), (1.98264, 38.4), (3.5833, 46.08), (6.83562, 38.4)],
    ),
    "local-guidellm081-smollm2-concurrent-1-2-4-8.json": (
        "GuideLLM",
        [(0.991177, 38.4), (1.98264, 38.4), (3.5833, 46.08), (6.83562, 38.4)],
    ),
    "local-guidellm081-smollm2-goodput.json": (
        "GuideLLM",
        [(0.935787, 70.4), (1.89451, 70.4), (2.59132, 12.8), (6.62595, 64), (3.37624, 25.6)],
    ),
    "local-guidellm081-vllm032-goodput.json": (
        "GuideLLM",
        [
            (1.94098, 512.7),
            (3.88272, 768),
            (7.71365, 998.4),
            (14.8845, 921.6),
            (11.279, 849.3),
            (9.64723, 729.6),
            (8.57259, 710.4),
        ],
    ),
}

LLAMA = {
    "llama-bench/fit-bench-results.csv": "another script",
    "llama-bench/llama32-1b.default-hip.jsonl": (
        "llama-bench",
        [(1, 195.653), (1, 188.791), (1, 173.362), (1, 126.861), (1, 64.6162)],
    ),
    "llama-bench/made_batched-bench.jsonl": (
        "llama-batched-bench",
        [(1, 124.768), (2, 134.871), (4, 180.493), (8, 218.685), (16, 247.631)],
    ),
    "llama-bench/made_batched-bench.md": "--output-format jsonl",
    "llama-bench/made_cpu_smollm2.csv": ("llama-bench", [(1, 117.349)]),
    "llama-bench/made_cpu_smollm2.json": ("llama-bench", [(1, 58.3811)]),
    "llama-bench/made_cpu_smollm2.jsonl": ("llama-bench", [(1, 140.255)]),
    "llama-bench/made_cpu_smollm2.md": "-o json",
    "llama-bench/made_cpu_smollm2.sql": "never run",
    "llama-bench/quick-test_with_stderr.jsonl": ("llama-bench", [(1, 192.587), (1, 182.118), (1, 142.84)]),
    "llama-bench/rpc_markdown.log": "-o json",
    "llama-bench/run_info_system.json": "describes a host",
    "llama-bench/step35-flash_rocm_strix-halo.json": (
        "llama-bench",
        [(1, 24.4744), (1, 22.8499), (1, 21.8548), (1, 20.1673), (1, 17.84), (1, 14.1595)],
    ),
    "llama-bench/vulkan_rx7900xtx_sweep.txt": "-o json",
    "llama-benchy/sample.json": ("llama-benchy", [(1, 49.9779), (2, 98.7048)]),
}

OTHERS = {
    "custom/aibrix_profile_simulator-llama2-7b-a100.json": "AIBrix",
    "custom/hhelloe_vllm_summary.json": "another script",
    "custom/llm-perf_alternative-format.csv": "may be of one stream",
    "custom/llm-perf_qwen3-32b-fp8.csv": "no percentiles",
    "local-INDEX.md": "no result file",
}


ROWS = GUIDELLM | LLAMA | OTHERS
