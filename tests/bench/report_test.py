# SPDX-License-Identifier: MIT
"""bench/report.py and bench/store.py on made-up results, and bench/goals.json against the results in the tree."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
sys.path.insert(0, str(BENCH))
sys.dont_write_bytecode = True
import report  # noqa: E402
import sources  # noqa: E402

GOALS = {
    "subjects": {"codec": {"files": ["codec.json"], "note": "", "ratio": "ratio_to_mix_copy"},
                 "peers": {"files": ["peers.json"], "note": "", "peers": True}},
    "goals": [{"subject": "codec", "row": "encode .*", "metric": "ratio_to_mix_copy", "at_least": 1.0},
              {"subject": "codec", "row": ".*", "metric": "times_best_peer", "at_least": 0.985}],
    "limits": {"noise": "Copies differ.", "packing": "Too many instructions.", "unused": "Nothing."},
    "reasons": [{"subject": "codec", "row": ".*", "within": 0.98, "limit": "noise"},
                {"subject": "codec", "row": ".*six.*", "metric": "ratio_to_mix_copy", "limit": "packing"}],
}


def row(name, ratio, library=None):
    return {"name": name, "ratio_to_mix_copy": ratio, "gb_per_s": 1000 * ratio} | ({"library": library} if library else {})


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.results = pathlib.Path(self.folder.name)
        self.write("codec", [row("encode fast", 1.1), row("encode six", 0.7), row("encode near", 0.99), row("decode six", 0.5)])
        self.write("peers", [row("encode fast", 0.9, "torch"), row("encode fast", 1.0, "triton"), row("other", 2.0, "triton")])

    def write(self, subject, rows, source_hash="now"):
        context = {"commit": "abc", "source_hash": source_hash}
        (self.results / f"{subject}.json").write_text(json.dumps({"context": context, "rows": rows}))

    def report(self):
        rows, _, problems = report.load(GOALS, self.results, lambda subject: "now")
        report.add_best_peers(rows["codec"], rows["peers"])
        return report.check_goals(GOALS, rows, problems), problems

    def test_every_goal_is_listed_with_figure_and_limit(self):
        lines, problems = self.report()
        self.assertEqual(problems, [])
        self.assertEqual([(line[1], line[2], line[4], line[5]) for line in lines],
                         [("encode fast", "ratio_to_mix_copy", 1.1, ""), ("encode six", "ratio_to_mix_copy", 0.7, "packing"),
                          ("encode near", "ratio_to_mix_copy", 0.99, "noise"), ("encode fast", "times_best_peer", 1.1, "")])

    def test_a_miss_without_a_reason_is_a_problem(self):
        self.write("codec", [row("encode fast", 0.7), row("encode six", 0.7)])
        lines, problems = self.report()
        self.assertEqual([line[5] for line in lines], ["?", "packing", "?"])
        self.assertEqual(len(problems), 2)  # against the copy, and against the best peer
        self.assertIn("encode fast: ratio_to_mix_copy misses 1 and goals.json gives no reason", problems[0])

    def test_stale_missing_and_unmatched_results_are_problems(self):
        self.write("codec", [row("decode six", 0.5)], source_hash="before")
        (self.results / "peers.json").unlink()
        problems = self.report()[1]
        self.assertIn("bench/results/codec.json is stale: measured at commit abc, the sources changed since", problems)
        self.assertIn("bench/results/peers.json is missing", problems)
        self.assertIn("no row of codec matches 'encode .*' and has 'ratio_to_mix_copy'", problems)

    def test_the_best_peer_stands_beside_its_row(self):
        text = report.table(GOALS, self.report()[0], "codec")
        self.assertIn("| encode fast | ratio_to_mix_copy | 1 | 1.1 | pass |  | 1.10 | triton | 1.00 |", text)
        self.assertIn("| encode six | ratio_to_mix_copy | 1 | 0.7 | miss | packing | 0.70 |  |  |", text)
        self.assertIn("- **packing**: Too many instructions.", text)
        self.assertNotIn("unused", text)

    def test_store_refuses_what_is_no_result(self):
        for context, words in [({"dry_run": True}, "dry run"), ({"wrong": ["row (library): codes"]}, "row (library): codes"),
                               ({"subject": "cuda_codec"}, "results of cuda_codec, not of codec_peers")]:
            raw, stored = self.results / "raw.json", self.results / "stored.json"
            raw.write_text(json.dumps({"context": context, "rows": []}))
            run = subprocess.run([sys.executable, BENCH / "store.py", "codec_peers", raw, stored], capture_output=True, text=True)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(words, run.stderr)
            self.assertFalse(stored.exists())


class Goals(unittest.TestCase):
    def setUp(self):
        self.goals = json.loads((BENCH / "goals.json").read_text())

    def test_goals_and_reasons_name_what_there_is(self):
        for entry in self.goals["goals"] + self.goals["reasons"]:
            self.assertIn(entry["subject"], self.goals["subjects"])
            re.compile(entry["row"])
        self.assertEqual({reason["limit"] for reason in self.goals["reasons"]}, set(self.goals["limits"]))
        self.assertLessEqual(set(self.goals["subjects"]), set(sources.SOURCES))

    def test_every_miss_of_the_stored_results_has_a_reason(self):
        rows, _, _ = report.load(self.goals)
        report.add_best_peers(rows["cuda_codec"], rows["cuda_codec_peers"])
        problems = []
        lines = report.check_goals(self.goals, rows, problems)
        self.assertGreater(len(lines), 200)
        self.assertEqual([p for p in problems if "no reason" in p], [])

    def test_every_placeholder_of_the_page_is_filled(self):
        known = {f"@{subject}@" for subject in self.goals["subjects"]}
        known |= {"@peers_table@", "@codec_peers_cpp_table@", "@cuda_codec_peers_table@"}
        self.assertEqual(set(re.findall(r"@\w+@", (BENCH / "performance.in.md").read_text())), known)


if __name__ == "__main__":
    unittest.main()
