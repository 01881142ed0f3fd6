"""`trogdor run|check FILE.toml`: workloads with faults in place of Apache Kafka's agents and
coordinator.
"""

from ottla.base.loading import deferred
from ottla.tools.text_files import read_text
from ottla.tools.workloads.plan import example_path, parse_plan
from ottla_scripts.flags import split_output
from ottla_scripts.printing import as_json, err, out

_run_plan = deferred("ottla.tools.workloads.running", "run_plan")
_USAGE = "USAGE: trogdor run|check FILE.toml [--output json]"
_HELP = """Producers, consumers and faults of brokers, as a TOML file lists them.

Usage:
  trogdor [action] FILE.toml [--output json]

Actions:
  run: Run the workload; the exit code is 1 if an acknowledged record is missing.
  check: Check the file.
  example: Print a file that has every key.
  help: This help message."""
_ACTIONS_OF_APACHE = ("agent", "exec", "coordinator", "client", "agent-client")
# The report is JSON of its own.
READS_OUTPUT = True


def run(name: str, words: list[str]) -> int:
    """Run or check a workload; the exit code is 1 if an acknowledged record is missing."""
    arguments, is_json = split_output(words)
    action = arguments[0] if arguments else "help"
    if action in ("help", "--help", "-h"):
        out(_HELP)
        return 0
    if arguments == ["example"]:
        out(read_text(example_path()).rstrip("\n"))
        return 0
    if len(arguments) != 2 or action not in ("run", "check"):
        if action in _ACTIONS_OF_APACHE:
            err(
                f"trogdor {action} is not available: one process runs a workload and its brokers. "
                "Write the specification as TOML: 'trogdor example' prints a file that has every key."
            )
        elif action not in ("run", "check"):
            err(f"Unknown action '{action}'.  Type 'trogdor help' for help.")
        err(_USAGE)
        return 1
    plan = parse_plan(read_text(arguments[1]), arguments[1])
    if arguments[0] == "check":
        if is_json:
            as_json({"file": arguments[1], "problems": []})
        else:
            out(f"{arguments[1]}: no problems found.")
        return 0
    report = _run_plan(plan, err)
    facts = report.facts()
    if is_json:
        as_json(facts)
    else:
        _print(facts)
    return 1 if report.problems else 0


def _print(facts: dict[str, list[dict[str, object]]]) -> None:
    for kind in ("produce", "consume"):
        for row in facts[kind]:
            out(f"{kind}: " + ", ".join(f"{key} {value}" for key, value in row.items()))
    for problem in facts["problems"]:
        err(str(problem))
