"""`ottla perf workload FILE`: producers, consumers and faults of brokers, as a file lists them."""

import click

from ottla.base.loading import deferred
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.text_files import read_text

_example_path = deferred("ottla.tools.workloads.plan", "example_path")
_parse_plan = deferred("ottla.tools.workloads.plan", "parse_plan")
_run_plan = deferred("ottla.tools.workloads.running", "run_plan")
_PRODUCED = ("topic", "sent", "acknowledged", "records_per_second", "latency_ms_median", "latency_ms_p99", "errors")  # fmt: skip
_CONSUMED = ("topic", "read", "duplicates", "missing", "records_per_second")


@click.command("workload")
@click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False)
@click.option("--check", is_flag=True, help="Only check the file.")
@click.option("--example", is_flag=True, help="Print a file that has every key.")
@options.formatted
def command(output: Output, file: str | None, check: bool, example: bool) -> int:
    """Run the producers, the consumers and the faults of a TOML file, and count lost records.

    Without the key `bootstrap`, the brokers run in this process until the end. The exit code is 1
    if an acknowledged record was not read, or something else went wrong.

    \b
    ottla perf workload --example > kill-the-leader.toml
    ottla perf workload kill-the-leader.toml
    ottla perf workload kill-the-leader.toml --check
    """
    if example:
        text = read_text(_example_path())
        output.done(text.rstrip("\n"), example=text)
        return 0
    if file is None:
        raise click.UsageError("Name a file; --example prints one.")
    plan = _parse_plan(read_text(file), file)
    if check:
        output.done(f"{file}: no problems found.", file=file, problems=[])
        return 0
    report = _run_plan(plan, note)
    facts = report.facts()
    if output.is_json:
        output.done("", **facts)
    else:
        produced = [row | {"errors": sum(row["errors"].values())} for row in facts["produce"]]
        output.rows(produced, _PRODUCED)
        output.rows(facts["consume"], _CONSUMED)
        for problem in facts["problems"]:
            note(problem)
    return 1 if facts["problems"] else 0
