#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# The program examples/roofline from the outside: its figures against arithmetic done here, and what it does with bad
# input. The environment variable NUMFMT_ROOFLINE names the program.
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("NUMFMT_ROOFLINE", "")

# DeepSeek-V3, Mixtral-8x7B, gpt-oss-20b: shortened config.json files.
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False}
DEEPSEEK = {"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128,
            "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "tie_word_embeddings": False,
            "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
            "moe_intermediate_size": 2048,
            "first_k_dense_replace": 3, "moe_layer_freq": 1}
MIXTRAL = {"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8,
           "num_experts_per_tok": 2, "sliding_window": None, "tie_word_embeddings": False}


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60)


class RooflineTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = pathlib.Path(self.directory.name)

    def result(self, *arguments):
        done = run(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def refused(self, *arguments, says=()):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        for text in says:
            self.assertIn(text, done.stderr)
        return done.stderr

    def config(self, content, name="config.json"):
        file = self.path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    # --- figures ---

    def test_70b_mxfp4_on_h200(self):
        r = self.result("--model", "70b-gqa", "--weights", "mxfp4", "--kv", "fp8", "--gpu", "h200", "--batch", 16)
        self.assertEqual(r["parameters"]["total"], 70553706496)
        self.assertEqual(r["weights"]["bits_per_weight"], 4.25)
        self.assertEqual(r["kv"]["bytes_per_token"], 163840)
        embedding, norms = 128256 * 8192, 161 * 8192
        linear = 70553706496 - 2 * embedding - norms
        self.assertEqual(r["weight_bytes"], linear * 4.25 / 8 + 2 * (2 * embedding + norms))
        step = next(d for d in r["decode"] if d["batch"] == 16)
        self.assertEqual(step["weight_bytes"], linear * 4.25 / 8 + 2 * (embedding + norms + 16 * 8192))
        self.assertEqual(step["kv_bytes"], 16 * 8193 * 163840)
        self.assertAlmostEqual(step["memory_seconds"], (step["weight_bytes"] + step["kv_bytes"]) / 4.8e12, delta=1e-12)
        self.assertEqual(step["floor_seconds"], max(step["memory_seconds"], step["compute_seconds"]))
        self.assertEqual(step["bound"], "memory")
        self.assertTrue(r["fits"])
        # Room: (141 GB - weights) / (8192 x 163840 bytes).
        self.assertEqual(r["sequences_that_fit"], int((141e9 - r["weight_bytes"]) // (8192 * 163840)))
        # The context at which 16 caches outweigh the weights.
        self.assertEqual(step["overtaking_context"], math.ceil(step["weight_bytes"] / 16 / 163840))
        self.assertIsNone(r["knee_batch"])
        self.assertGreater(r["knee_batch_without_cache"], 206 * 4.25 / 16)
        self.assertLess(r["knee_batch_without_cache"], 66)
        mlp = next(o for o in r["decode_operations"] if o["operation"] == "mlp")
        self.assertEqual(mlp["flops"], 2 * 16 * 80 * 3 * 8192 * 28672)
        self.assertAlmostEqual(mlp["ridge"], 989 / 4.8, places=9)
        self.assertEqual([d["batch"] for d in r["decode"]], [1, 2, 4, 8, 16, 32, 64, 128, 256])

    def test_floor_never_falls_with_the_batch(self):
        for model in ("8b-gqa", "70b-gqa", "671b-moe", "sliding-window"):
            r = self.result("--model", model, "--batch", 3)
            floors = [d["floor_seconds"] for d in r["decode"]]
            self.assertEqual(floors, sorted(floors))
            self.assertEqual([d["batch"] for d in r["decode"]][:4], [1, 2, 3, 4])

    def test_published_parameters(self):
        # "8.03B", "70.6B", "671B / 37B" as the authors round; Gemma's 27B without its vision tower.
        for model, total, active, tolerance in (("8b-gqa", 8.03e9, 7.50e9, 1e-3), ("70b-gqa", 70.55e9, 69.5e9, 1e-3),
                                                ("671b-moe", 671e9, 37e9, 0.011),
                                                ("sliding-window", 27.0e9, 27.0e9, 1e-3)):
            r = self.result("--model", model)["parameters"]
            self.assertLess(abs(r["total"] / total - 1), tolerance, model)
            self.assertLess(abs(r["active"] / active - 1), tolerance, model)

    def test_experts(self):
        r = self.result("--model", "671b-moe", "--weights", "block_fp8_128x128")
        self.assertEqual(r["weights"]["bits_per_weight"], 8.001953125)
        for d in r["decode"]:
            self.assertAlmostEqual(d["experts_touched"], 256 * (1 - (1 - 8 / 256) ** d["batch"]), places=9)

    def test_kv_formats(self):
        # 2 x 32 layers x 8 heads x (128 codes, and scales that grow with the tokens).
        vectors = 2 * 32 * 8
        for kv, vector in (("bf16", 256), ("fp16", 256), ("fp8", 128), ("fp8_per_tensor", 128), ("fp8_per_token", 132),
                           ("mxfp8", 132), ("mxfp4", 68), ("nvfp4", 72), ("int4", 67), ("int4_g32", 74)):
            r = self.result("--model", "8b-gqa", "--kv", kv)
            self.assertEqual(r["kv"]["bytes_per_token"], vectors * vector, kv)
        self.assertEqual(self.result("--model", "671b-moe")["kv"]["bytes_per_token"], 70272)

    def test_tensor_parallel(self):
        per_token = {n: self.result("--model", "70b-gqa", "--tp", n)["kv"]["bytes_per_token"] for n in (1, 8, 16)}
        self.assertEqual(per_token, {1: 327680, 8: 40960, 16: 40960})
        self.assertEqual(self.result("--model", "671b-moe", "--tp", 8)["kv"]["bytes_per_token"], 70272)

    def test_devices(self):
        measured = self.result("--model", "8b-gqa", "--gpu", "h200-measured")["gpu"]
        self.assertIn("measured", measured["source"])
        self.assertEqual(measured["bandwidth_bytes_per_second"], 4.70e12)
        self.assertEqual(measured["peak_flops"]["bf16"], 860e12)
        for arguments, arithmetic in ((("--gpu", "b200", "--weights", "nvfp4"), "fp4"),
                                      (("--gpu", "h200", "--weights", "nvfp4"), "bf16"),
                                      (("--gpu", "h200", "--weights", "nvfp4", "--compute", "fp8"), "fp8")):
            self.assertEqual(self.result("--model", "8b-gqa", *arguments)["weights"]["arithmetic"], arithmetic)
        r = self.result("--model", "8b-gqa", "--bandwidth", 1, "--flops", 100)
        self.assertEqual(r["gpu"]["bandwidth_bytes_per_second"], 1e12)
        self.assertIsNone(r["fits"])
        half = self.result("--model", "8b-gqa", "--bandwidth", 0.5, "--flops", 100)
        self.assertAlmostEqual(half["decode"][0]["memory_seconds"], 2 * r["decode"][0]["memory_seconds"], places=12)
        self.assertFalse(self.result("--model", "70b-gqa", "--memory", 100)["fits"])

    def test_measured_time(self):
        r = self.result("--model", "8b-gqa", "--batch", 4, "--measured-ms", 10)
        step = next(d for d in r["decode"] if d["batch"] == 4)
        self.assertAlmostEqual(r["measured"]["bandwidth_utilisation"],
                               (step["weight_bytes"] + step["kv_bytes"]) / (10e-3 * 4.8e12), places=9)
        self.assertAlmostEqual(r["measured"]["compute_utilisation"], step["compute_seconds"] / 10e-3, places=9)
        self.assertIn("of the bandwidth (MBU)", run("--model", "8b-gqa", "--measured-ms", 10).stdout)
        self.assertIn("Below it", run("--model", "8b-gqa", "--measured-ms", 0.1).stdout)

    # --- config.json ---

    def test_config_equals_preset(self):
        for preset, config in (("8b-gqa", LLAMA), ("671b-moe", DEEPSEEK)):
            a, b = self.result("--model", preset), self.result("--config", self.config(config))
            for key in ("parameters", "weight_bytes", "kv", "decode", "decode_operations", "prefill"):
                self.assertEqual(a[key], b[key], key)

    def test_config_of_gemma_3(self):
        text = {"model_type": "gemma3_text", "hidden_size": 5376, "num_hidden_layers": 62, "num_attention_heads": 32,
                "num_key_value_heads": 16, "head_dim": 128, "intermediate_size": 21504, "vocab_size": 262208,
                "sliding_window": 1024}
        preset = self.result("--model", "sliding-window")
        pattern = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(62)]
        for extra in ({}, {"sliding_window_pattern": 6}, {"layer_types": pattern}):
            r = self.result("--config", self.config({"model_type": "gemma3", "text_config": {**text, **extra}}))
            self.assertEqual(r["parameters"], preset["parameters"])
            self.assertEqual(r["decode"], preset["decode"])
        self.assertTrue(any("tie_word_embeddings" in note for note in r["notes"]))

    def test_config_of_mixtral(self):
        # Published: 46.7B in all, 12.9B active (which counts the embedding table).
        r = self.result("--config", self.config(MIXTRAL))
        self.assertLess(abs(r["parameters"]["total"] / 46.7e9 - 1), 1e-3)
        self.assertLess(abs((r["parameters"]["active"] + 32000 * 4096) / 12.9e9 - 1), 2e-3)

    def test_sliding_window_forms(self):
        mistral = {**LLAMA, "sliding_window": 4096}
        local = lambda config: self.result("--config", self.config(config))["model"]["local_layers"]
        self.assertEqual(local(mistral), 32)
        self.assertEqual(local({**mistral, "use_sliding_window": False}), 0)
        self.assertEqual(local({**mistral, "use_sliding_window": True, "max_window_layers": 28}), 4)
        self.assertEqual(local({**mistral, "sliding_window_pattern": 2}), 16)
        self.assertEqual(local({**mistral, "sliding_window_pattern": 1}), 0)
        self.assertEqual(local({**LLAMA, "sliding_window": None}), 0)

    def test_bad_config_values(self):
        bad_values = ((-1, "-1"), (0, "0"), (1.5, "1.5"), ("4096", '"4096"'), (True, "true"), ([1], "a list of 1"),
                      ({}, "an object"), (2 ** 63, str(2 ** 63)), (2 ** 64 - 1, str(2 ** 64 - 1)),
                      (-2 ** 63, str(-2 ** 63)))
        for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                    "intermediate_size", "vocab_size", "kv_lora_rank", "qk_nope_head_dim", "n_routed_experts",
                    "num_experts_per_tok", "moe_intermediate_size"):
            for value, shown in bad_values:
                self.refused("--config", self.config({**DEEPSEEK, key: value}),
                             says=(f"config.json': {key}: got {shown}, wanted an integer from 1 to ",))
        for value in ("1e400", "1e30", "123456789012345678901234567890"):
            text = json.dumps(LLAMA).replace("4096", value, 1)
            self.refused("--config", self.config(text), says=("hidden_size" if value != "1e400" else "not JSON",))
        self.refused("--config", self.config({**LLAMA, "tie_word_embeddings": 1}),
                     says=("tie_word_embeddings: got 1, wanted true or false",))
        self.refused("--config", self.config({**LLAMA, "model_type": 7}), says=("model_type: got 7, wanted a string",))

    def test_missing_config_keys(self):
        for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"):
            for config in ({k: v for k, v in LLAMA.items() if k != key}, {**LLAMA, key: None}):
                self.refused("--config", self.config(config), says=(f"{key}: missing, wanted an integer from 1",))
        for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "num_experts_per_tok"):
            config = {k: v for k, v in DEEPSEEK.items() if k != key}
            self.refused("--config", self.config(config), says=(f"{key}: missing, wanted an integer from 1",))
        self.refused("--config", self.config({"text_config": {"hidden_size": 1}}),
                     says=("text_config.num_hidden_layers: missing",))

    def test_config_sizes_that_do_not_go_together(self):
        def refused(base, changes, *says):
            self.refused("--config", self.config({**base, **changes}), says=says)
        refused(LLAMA, {"num_key_value_heads": 5},
                "num_key_value_heads: got 5, wanted a divisor of num_attention_heads, 32")
        refused(LLAMA, {"num_attention_heads": 33}, "head_dim: missing", "4096", "33")
        refused(DEEPSEEK, {"num_experts_per_tok": 257}, "num_experts_per_tok: got 257, wanted at most 256")
        refused(DEEPSEEK, {"first_k_dense_replace": 62}, "first_k_dense_replace: got 62, wanted at most 61")
        refused(DEEPSEEK, {"moe_layer_freq": 2}, "moe_layer_freq: got 2")
        refused(DEEPSEEK, {"mlp_only_layers": [1]}, "mlp_only_layers: got a list of 1")
        refused(LLAMA, {"layer_types": ["full_attention"] * 31}, "layer_types: got 31 entries", "32")
        refused(LLAMA, {"layer_types": ["full_attention"] * 31 + ["mamba"]}, 'layer_types[31]: got "mamba"')
        refused(LLAMA, {"layer_types": ["sliding_attention"] * 32}, "sliding_window: missing")
        refused(LLAMA, {"layer_types": 7}, "layer_types: got 7")
        refused(LLAMA, {"sliding_window": 0}, "sliding_window: got 0, wanted an integer from 1")
        refused(MIXTRAL, {"num_local_experts": -8}, "num_local_experts: got -8")

    def test_config_files_that_are_not(self):
        for text, says in (("", "not JSON"), ("{", "not JSON"), ("[" * 100000, "not JSON"), ("[]", "wanted an object"),
                           ("7", "got 7, wanted an object"), ("\x00\xff", "not JSON"),
                           ('{"text_config": 3}', "text_config: got 3")):
            self.refused("--config", self.config(text), says=(says,))
        self.refused("--config", self.config("[" * 200000 + "]" * 200000), says=("wanted an object",))
        self.refused("--config", self.path / "absent.json", says=("cannot read", "absent.json"))
        self.refused("--config", self.path, says=("is a directory",))
        self.refused("--config", self.config(" " * (17 << 20)), says=("16 MiB",))
        # Control characters from a file never reach the terminal.
        error = self.refused("--config", self.config({**LLAMA, "hidden_size": "\x1b[31mred"}))
        self.assertNotIn("\x1b", error)

    # --- the command line ---

    def test_unknown_names(self):
        self.refused("--model", "7b", says=("'7b'", "8b-gqa, 70b-gqa, 671b-moe, sliding-window"))
        self.refused("--model", "8b-gqa", "--gpu", "h800", says=("'h800'", "a100", "h200-measured"))
        self.refused("--model", "8b-gqa", "--weights", "int3", says=("--weights: 'int3'", "mxfp4", "awq_int4", "bf16"))
        self.refused("--model", "8b-gqa", "--embedding", "int3", says=("--embedding: 'int3'",))
        self.refused("--model", "8b-gqa", "--kv", "int3", says=("--kv: 'int3'", "mxfp4"))
        self.refused("--model", "8b-gqa", "--kv", "block_fp8_128x128", says=("several tokens",))
        self.refused("--model", "8b-gqa", "--compute", "fp4", says=("--compute: got 'fp4'", "bf16, fp8"))

    def test_bad_numbers(self):
        for option, value in (("--batch", 0), ("--batch", -1), ("--batch", 2 ** 40), ("--context", 0), ("--prompt", 0),
                              ("--tp", 0), ("--tp", 3), ("--tp", 128), ("--bandwidth", 0), ("--bandwidth", -1),
                              ("--flops", "nan"), ("--flops", "inf"), ("--memory", 0), ("--measured-ms", 0),
                              ("--batch", "x"), ("--context", 2 ** 70), ("--bandwidth", "fast")):
            self.refused("--model", "8b-gqa", option, value, says=(option,))
        self.refused(says=("--model or --config",))
        self.refused("--model", "8b-gqa", "--config", "x.json", says=("does not go with",))
        self.refused("--model", "8b-gqa", "--bandwidth", 1, says=("--flops",))
        self.refused("--model", "8b-gqa", "--frobnicate", says=("--frobnicate",))

    def test_extreme_sizes_give_numbers(self):
        huge = {"hidden_size": 2 ** 20, "num_hidden_layers": 2 ** 14, "num_attention_heads": 2 ** 14,
                "num_key_value_heads": 2 ** 14, "head_dim": 2 ** 14, "intermediate_size": 2 ** 24,
                "vocab_size": 2 ** 26}
        tiny = {key: 1 for key in huge}
        for config in (huge, tiny):
            r = self.result("--config", self.config(config), "--batch", 2 ** 20, "--context", 2 ** 30)
            for d in r["decode"]:
                self.assertGreater(d["floor_seconds"], 0)
                self.assertTrue(math.isfinite(d["floor_seconds"]))

    def test_help_and_list(self):
        help_text = run("--help")
        self.assertEqual(help_text.returncode, 0)
        for text in ("Examples:", "--weights", "--measured-ms", "roofline --model 70b-gqa --weights mxfp4 --kv fp8"):
            self.assertIn(text, help_text.stdout)
        listing = run("--list")
        self.assertEqual(listing.returncode, 0)
        for text in ("8b-gqa", "70b-gqa", "671b-moe", "sliding-window", "h200-measured", "a100", "h100", "b200", "l40s",
                     "nvfp4", "awq_int4", "327680"):
            self.assertIn(text, listing.stdout)

    def test_tables(self):
        done = run("--model", "671b-moe", "--weights", "block_fp8_128x128", "--tp", 8, "--batch", 64)
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("671,026,404,352", "222.4", "70,272 B per rank", "experts", "Prefill of 8192 tokens",
                     "expected number under uniform"):
            self.assertIn(text, done.stdout)

    def test_csv(self):
        file = self.path / "out.csv"
        r = self.result("--model", "8b-gqa", "--batch", 4, "--csv", file)
        with file.open(newline="") as text:
            rows = list(csv.DictReader(text))
        steps = [row for row in rows if row["phase"] == "decode" and row["item"] == "step"]
        self.assertEqual([float(row["floor_seconds"]) for row in steps], [d["floor_seconds"] for d in r["decode"]])
        operations = {row["item"]: row for row in rows if row["phase"] == "decode" and row["item"] != "step"}
        for o in r["decode_operations"]:
            self.assertEqual(float(operations[o["operation"]]["flops"]), o["flops"])
            self.assertEqual(float(operations[o["operation"]]["intensity"]), o["intensity"])
        self.assertEqual([row["item"] for row in rows if row["phase"] == "prefill"][0], "step")
        self.refused("--model", "8b-gqa", "--csv", self.path / "absent" / "x.csv", says=("--csv: cannot write",))

    def test_plot(self):
        self.refused("--model", "8b-gqa", "--plot", self.path / "x.pdf", says=("--plot", ".svg or .png"))
        if shutil.which("gnuplot") is None:
            self.skipTest("gnuplot is not installed")
        for name, start in (("x.svg", b"<?xml"), ("x.png", b"\x89PNG")):
            file = self.path / name
            for arguments in (("--model", "671b-moe", "--batch", 8, "--measured-ms", 20),
                              ("--model", "8b-gqa", "--context", 16, "--weights", "mxfp4"),
                              ("--model", "8b-gqa", "--bandwidth", 1, "--flops", 1e-6)):
                done = run(*arguments, "--plot", file)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(file.read_bytes().startswith(start))
        svg = self.path / "x.svg"
        self.assertEqual(run("--model", "8b-gqa", "--context", 16, "--plot", svg).returncode, 0)
        text = svg.read_text()
        for label in ("attention", "lm_head", "norms", "4.8 TB/s", "bf16: 989 TFLOP/s", "FLOP per byte", "batch 2"):
            self.assertIn(label, text)


if __name__ == "__main__":
    if not PROGRAM:
        print("SKIPPED: the environment variable NUMFMT_ROOFLINE does not name the program")
        sys.exit(0)
    unittest.main()
