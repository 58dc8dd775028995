"""`chatbot doctor`: examines the settings and every service, and says what to do."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence

from chatbot.errors import ConfigurationError
from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding
from serving.cli.doctor.report import print_report
from serving.cli.doctor.values import Value, values_of
from serving.cli.startup import keep_log_aside

TOTAL_SECONDS = 7.5  # whatever is down
SHORTEST_SECONDS = 3.0


def examine(*, as_json: bool) -> bool:
    """Print what was found, and return whether all that is configured works."""
    began = time.monotonic()
    values: Sequence[Value] = ()
    try:
        settings = Settings.load()
    except ConfigurationError as error:
        findings = [
            Finding("settings", "fail", line, "Correct it where it is set, or remove it.")
            for line in error.message.splitlines()
        ]
    else:
        from serving.cli.doctor.examination import (  # noqa: PLC0415 - takes seconds
            examine_services,
            load,
        )

        keep_log_aside(settings)
        values = values_of(settings)
        load(settings)
        seconds = max(SHORTEST_SECONDS, TOTAL_SECONDS - (time.monotonic() - began))
        findings = [
            Finding("settings", "warn", sentence, "Rename it where it is set, or remove it.")
            for sentence in settings.misspelled
        ]
        findings += asyncio.run(examine_services(settings, seconds=seconds))
    healthy = all(finding.state != "fail" for finding in findings)
    if as_json:
        report = {
            "ok": healthy,
            "settings": [value.json() for value in values],
            "findings": [finding.json() for finding in findings],
        }
        sys.stdout.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    else:
        print_report(values, findings)
    return healthy
