"""Runs the examinations of `chatbot doctor`, and reads what they found."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chatbot.settings import Settings
from serving.cli.doctor.examination import examine_services, load
from serving.cli.doctor.findings import Finding

DEAD = "127.0.0.1:9"
SECONDS = 8.0


def of_part(findings: Sequence[Finding], part: str) -> list[Finding]:
    return [finding for finding in findings if finding.part == part]


def states(findings: Sequence[Finding], part: str) -> set[str]:
    return {finding.state for finding in of_part(findings, part)}


def words(findings: Sequence[Finding], part: str) -> str:
    return "\n".join(f"{each.detail} {each.advice}" for each in of_part(findings, part))


async def examined(tmp_path: Path, **fields: Any) -> Sequence[Finding]:
    settings = Settings(chatbot_data_dir=tmp_path, **fields)
    load(settings)
    return await examine_services(settings, seconds=SECONDS)
