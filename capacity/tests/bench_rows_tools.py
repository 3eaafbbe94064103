"""The right reading of the shared result files of most tools, by their INDEX.md.

(tool, [(in flight, output tokens/s) of each stage]), or words of the refusal.
"""

AIPERF = {
    "aiperf/qwen_concurrency1_profile_export_aiperf.json": ("AIPerf", [(0.914608, 50.0821)]),
    "aiperf/qwen_concurrency2_profile_export_aiperf.json": ("AIPerf", [(1.88637, 100.651)]),
    "aiperf/made_v0.13.0_c2/profile_export_aiperf.json": ("AIPerf", [(1.86503, 195.111)]),
    "aiperf/made_v0.13.0_c8/profile_export_aiperf.json": ("AIPerf", [(7.63572, 513.543)]),
    "aiperf/made_v0.13.0_c8/profile_export_aiperf.csv": ("AIPerf", [(7.64, 513.54)]),
    "aiperf/made_v0.13.0_c16/profile_export_aiperf.json": ("AIPerf", [(15.2537, 725.33)]),
    "aiperf/made_v0.13.0_c32/profile_export_aiperf.json": ("AIPerf", [(30.2873, 837.096)]),
    "aiperf/made_v0.13.0_c64/profile_export_aiperf.json": ("AIPerf", [(58.4115, 919.097)]),
    "aiperf/made_v0.13.0_c64/profile_export_aiperf.csv": ("AIPerf", [(58.41, 919.1)]),
    "aiperf/made_v0.13.0_c64/profile_export_first20.jsonl": "",
    "local-aiperf0130-smollm2-c4.json": ("AIPerf", [(3.99298, 14.8862)]),
    "local-aiperf0130-smollm2-c4.csv": ("AIPerf", [(3.99, 14.89)]),
    "local-aiperf0130-smollm2-c4-server-metrics.json": "",
}

_INFERENCE_PERF = {
    "vllm": [
        (0.488726, 64.2335),
        (17.0343, 1943.01),
        (41.6171, 3820.66),
        (93.3007, 5693.88),
        (389.137, 6316.81),
        (422.193, 6323.77),
        (427.053, 6431.06),
    ],
    "vllm_batch_size": [
        (0.481706, 62.1536),
        (21.2622, 2366.17),
        (56.7863, 4661.36),
        (188.064, 6955.73),
        (417.615, 7094.38),
        (427.478, 7183.15),
        (431.572, 7140.79),
    ],
    "vllm_eagle": [
        (0.716163, 62.7038),
        (13.9176, 1129.09),
        (31.1554, 2191.22),
        (66.2791, 3252.18),
        (172.054, 4208.06),
        (383.561, 4261.66),
        (409.889, 4277.61),
    ],
    "vllm_v0_engine": [
        (0.529135, 64.4301),
        (43.3398, 2498.71),
        (277.947, 4596.1),
        (416.268, 4729.53),
        (426.537, 4769.11),
        (428.378, 4777.91),
        (431.264, 4769.92),
    ],
}
INFERENCE_PERF = {
    f"inference-perf/kubecon-na-2025_{run}/stage_{place}_lifecycle_metrics.json": ("inference-perf", [stage])
    for run, stages in _INFERENCE_PERF.items()
    for place, stage in enumerate(stages)
}
NO_STAGE = {
    f"inference-perf/kubecon-na-2025_{run}/{name}": words
    for run in _INFERENCE_PERF
    for name, words in {
        "summary_lifecycle_metrics.json": "mean over all stages",
        "summary_prometheus_metrics.json": "server's own view",
        "stage_3_prometheus_metrics.json": "server's own view",
        "manifests.yaml": "",
    }.items()
}
SGLANG = {
    "sglang/agg_n100_in128_out128_c8.jsonl": ("SGLang bench_serving", [(7.7716, 1415.83)]),
    "sglang/agg_n100_in128_out128_c32.jsonl": ("SGLang bench_serving", [(28.4252, 3190.94)]),
    "sglang/agg_n100_in512_out128_c8.jsonl": ("SGLang bench_serving", [(7.76251, 1418.54)]),
    "sglang/agg_n100_in512_out128_c32.jsonl": ("SGLang bench_serving", [(28.4503, 3151.44)]),
    "sglang/pd_intra_n100_in128_out128_c32.jsonl": ("SGLang bench_serving", [(26.7678, 4341.42)]),
    "sglang/llama_405b_online_output.jsonl": (
        "SGLang bench_serving",
        [
            (23.0241, 504.955),
            (53.0655, 911.144),
            (349.951, 1598.64),
            (879.554, 1820.65),
            (43.7785, 705.013),
            (224.291, 1224.39),
        ],
    ),
    "sglang/llama_3_3_70b_offline_output.jsonl": (
        "SGLang bench_serving",
        [
            (1974.58, 4520.70),
            (2832.40, 3492.29),
            (543.850, 2051.29),
            (989.235, 1654.99),
            (979.533, 1652.86),
            (4080.49, 6648.44),
            (1069.50, 3939.93),
        ],
    ),
}
_PLANNER = [
    [247.464, 274.383, 301.2, 327.9, 354.492, 380.953, 407.348, 433.63, 459.742, 485.798],
    [250.843, 389.036, 526.407, 662.92, 798.662, 933.619, 1067.736, 1201.085, 1333.52, 1465.286],
    [245.249, 271.678, 297.899, 323.954, 349.864, 375.665, 401.222, 426.618, 451.915, 477.048],
    [244.514],
]
OTHERS = {
    "llmperf/anyscale_70b_summary.json": ("LLMPerf", [(3.32531, 207.521)]),
    "llmperf/bedrock_70b_summary.json": ("LLMPerf", [(2.96308, 62.8671)]),
    "llmperf/together_7b_summary.json": ("LLMPerf", [(3.43878, 255.83)]),
    "llmperf/anyscale_70b_individual_first40.json": "single requests",
    "llmperf/philschmid_mistral-7b_tp1_summary.json": (
        "LLMPerf",
        [
            (1, 29.581),
            (2, 54.2936),
            (4, 100.051),
            (8, 171.381),
            (16, 254.027),
            (32, 347.768),
            (64, 394.546),
            (128, 419.941),
        ],
    ),
    "llm-d/br_v0_1_example.yaml": "time_per_output_token of 0.0837 ms cannot be",
    "llm-d/br_v0_2_example.yaml": ("llm-d-benchmark", [(83.3889, 2262.448)]),
    "llm-d/inference_perf_lifecycle.yaml": ("inference-perf", [(0.592742, 64.5161)]),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc4.json": ("InferenceMAX", [(4, 164.728)]),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc8.json": ("InferenceMAX", [(8, 294.103)]),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc16.json": ("InferenceMAX", [(16, 403.581)]),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc32.json": ("InferenceMAX", [(32, 648.268)]),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc48.json": ("InferenceMAX", [(48, 593.838)]),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc64.json": ("InferenceMAX", [(64, 663.038)]),
    "genai-bench/mock_run_data.json": ("genai-bench", [(1, 54.8914)]),
    "genai-bench/mock_experiment_data.json": "holds no results",
    "inference-perf/kubecon-na-2025_config.yaml": "",
    "catalog/llm-d-planner_BLIS_4groups.json": ("llm-d planner", [(None, tokens) for group in _PLANNER for tokens in group]),
}
ROWS = AIPERF | INFERENCE_PERF | NO_STAGE | SGLANG | OTHERS
