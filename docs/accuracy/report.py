#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Writes docs/accuracy.md: every figure in it comes from a program's output, every command in it is the one that was run.
"""usage: report.py                  write docs/accuracy.md from the sections (*.in.md) and the stored outputs (*.json)
       report.py --check          say whether it is what they give; exit code 1 where it is not
       report.py --run FOLDER     run every command of the sections with the programs in FOLDER first

In a section a line {{command NAME: PROGRAM OPTIONS}} becomes the command as a user types it. --run runs it with --json
and stores its output in NAME.json here; {picture} in OPTIONS is NAME.svg here. {{table NAME.FUNCTION}} becomes the text
that FUNCTION(output of NAME) of STUDY_tables.py makes, STUDY.in.md being the section; {{picture NAME: TEXT}} the picture.
"""
import importlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DOCUMENT = HERE.parent / "accuracy.md"
SECTIONS = ["intro", "layernorm", "attention", "weights"]
COMMAND = re.compile(r"^\{\{command ([\w-]+): (\w+) ?(.*)\}\}$", re.M)


def commands():
    """(name, program, options) of every command, in the order of the document."""
    for section in SECTIONS:
        for name, program, options in COMMAND.findall((HERE / f"{section}.in.md").read_text(encoding="utf-8")):
            yield name, program, options.replace("{picture}", f"docs/accuracy/{name}.svg")


def run(folder):
    for name, program, options in commands():
        path = (pathlib.Path.cwd() / folder / program).resolve()
        print(f"{program} {options}", flush=True)
        done = subprocess.run([path, *shlex.split(options), "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"{program}: exit code {done.returncode}")
        (HERE / f"{name}.json").write_text(json.dumps(json.loads(done.stdout), indent=0) + "\n", encoding="utf-8")


def render():
    sys.path.insert(0, str(HERE))
    parts = ["<!-- Written by docs/accuracy/report.py from docs/accuracy/*.in.md; edit those. -->"]
    for section in SECTIONS:
        text = (HERE / f"{section}.in.md").read_text(encoding="utf-8")

        def command(match):
            options = match[3].replace("{picture}", f"docs/accuracy/{match[1]}.svg")
            return f"```sh\nbuild/release/examples/{match[2]} {options}".rstrip() + "\n```"

        def table(match):
            output = json.loads((HERE / f"{match[1]}.json").read_text(encoding="utf-8"))
            return getattr(importlib.import_module(f"{section}_tables"), match[2])(output).strip()

        text = COMMAND.sub(command, text)
        text = re.sub(r"\{\{table ([\w-]+)\.(\w+)\}\}", table, text)
        text = re.sub(r"^\{\{picture ([\w-]+): (.*)\}\}$", r"![\2](accuracy/\1.svg)", text, flags=re.M)
        if "{{" in text:
            sys.exit(f"{section}.in.md: a placeholder nobody knows: {text[text.index('{{'):][:60]}")
        parts.append(re.sub(r"<!-- SPDX.*?-->\n", "", text).strip())
    return "\n\n".join(parts) + "\n"


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "--run":
        run(arguments[1])
    elif arguments not in ([], ["--check"]):
        print(__doc__)
        return 0 if arguments == ["--help"] else 2
    wanted = render()
    if arguments == ["--check"]:
        same = DOCUMENT.exists() and DOCUMENT.read_text(encoding="utf-8") == wanted
        if not same:
            print("docs/accuracy.md is out of date: run docs/accuracy/report.py")
        return 0 if same else 1
    DOCUMENT.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
