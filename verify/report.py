"""Report of a run, as JSON and as HTML. No secret is part of it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any

from verify import recall
from verify.recall import Recall
from verify.target_deployment import Finding
from verify.target_sweep import Attempt
from verify.temporary_rows import TemporaryRows

# A secret's shortest length that is looked for in the report.
SHORTEST_SECRET = 6
# Members of a JWK that only its owner has (RFC 7518).
PRIVATE_MEMBERS = ("d", "p", "q", "dp", "dq", "qi", "k")
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}"
    "table{border-collapse:collapse;width:100%}.same{color:#116329}.differs{color:#a40e26}td,th{text-align:left;"
    "padding:.25rem .75rem;vertical-align:top;border-bottom:1px solid #d8dee4;overflow-wrap:anywhere}"
)
HEAD = "<!doctype html><html lang=en><meta charset=utf-8>"


@dataclass
class Report:
    """Findings by part. `attempts` are all attacks that were tried; without any, the attacks were not part
    of the run. `removed`: rows of killed runs."""

    began_at: datetime
    release: str
    postgres: str
    ended_at: datetime | None = None
    catalogue: list[Finding] = field(default_factory=list)
    attacks: list[Finding] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    recall: list[Recall] = field(default_factory=list)
    changed_tables: list[str] = field(default_factory=list)
    in_use: bool = False
    # The adopter's functions that a person should read: no difference.
    to_read: list[Finding] = field(default_factory=list)
    removed: TemporaryRows | None = None
    # The part that failed, and its error. Later parts did not run.
    failure: str | None = None

    def end(self) -> None:
        self.ended_at = datetime.now(UTC)

    @property
    def findings(self) -> list[Finding]:
        """All differences."""
        changes = [] if self.in_use else self.changed_tables
        rows = [Finding("rows", "changes during the run", text) for text in changes]
        return [*self.catalogue, *self.attacks, *recall.findings(self.recall), *rows]

    def targets(self) -> list[dict[str, Any]]:
        """For each target the numbers of attacks that were tried, refused and answered, and of findings."""
        targets_with_findings = {finding.target for finding in self.attacks}
        counts: dict[str, list[int]] = {}
        for attempt in self.attempts:
            counts.setdefault(attempt.target, [0, 0])[attempt.status < 400] += 1
        return [
            {
                "target": target, "tried": refused + answered, "refused": refused,
                # A success that shows and changes nothing of the victim's, unless there is a finding.
                "answered": answered, "differs": target in targets_with_findings,
            }
            for target, (refused, answered) in counts.items()
        ]  # fmt: skip

    def summary(self) -> list[str]:
        """One line for each part."""
        tried = f"{len(self.attempts):,} attacks on {len(self.targets())} targets"
        rows = f"{len(self.changed_tables)} tables with rows that changed during the run"
        if self.failure:
            return [
                f"incomplete: {self.failure}",
                f"catalogue: {len(self.catalogue)} differences from release {self.release} so far",
                f"attacks: {tried}, {len(self.attacks)} differences so far",
            ]
        return [
            f"catalogue: {len(self.catalogue)} differences from release {self.release}",
            *(
                [f"attacks: {tried}, {len(self.attacks)} differences", f"rows: {rows}"]
                if self.attempts
                else ["attacks: not part of this run"]
            ),
            *([f"to read: {len(self.to_read)} functions that run past row security"] if self.to_read else []),
            *(f"recall: {_recall_text(result)}" for result in self.recall),
            *([] if self.recall else ["recall: not measured, because no org has chunks"]),
        ]

    def to_json(self, secrets: Iterable[str] = ()) -> str:
        document = {
            "differs": bool(self.findings),
            "failure": self.failure,
            "began_at": self.began_at.isoformat(),
            "ended_at": self.ended_at.isoformat() if self.ended_at else None,
            "release": self.release,
            "postgres": self.postgres,
            "summary": self.summary(),
            "findings": [asdict(finding) for finding in self.findings],
            "to_read": [asdict(finding) for finding in self.to_read],
            "targets": self.targets(),
            "attempts": [asdict(attempt) for attempt in self.attempts],
            "recall": [asdict(result) | {"recall": result.recall} for result in self.recall],
            "changed_tables": self.changed_tables,
            "removed_of_killed_runs": asdict(self.removed) if self.removed else None,
        }
        return without_secrets(json.dumps(document, indent=1), secrets)

    def to_html(self, secrets: Iterable[str] = ()) -> str:
        findings = self.findings
        verdict = f"{len(findings)} differences" if findings else "No difference"
        kind = "differs" if findings or self.failure else "same"
        if self.failure:
            verdict = f"Incomplete, {verdict.lower()} so far"
        rows = [[finding.target, finding.attack, finding.detail] for finding in findings]
        targets = [
            [
                entry["target"],
                entry["tried"],
                entry["refused"],
                entry["answered"],
                "yes" if entry["differs"] else "",
            ]
            for entry in self.targets()
        ]
        sizes = [
            [f"less than {result.chunks:,}", result.orgs, result.queries, _figure(result), result.skipped]
            for result in self.recall
        ]
        parts = [
            f"{HEAD}<title>verify: {verdict}</title><style>{STYLE}</style>",
            f"<h1>verify: <span class={kind}>{verdict}</span></h1>",
            f"<p>Release {escape(self.release)}, Postgres {escape(self.postgres)}, "
            f"{self.began_at:%Y-%m-%d %H:%M} UTC</p>",
            *(f"<p>{escape(line)}</p>" for line in self.summary()),
            _table("Differences", ("Object or target", "Property or attack", "Detail"), rows),
            _table(
                "To read: functions that run past row security, no difference",
                ("Function", "Property", "Detail"),
                [[finding.target, finding.attack, finding.detail] for finding in self.to_read],
            ),
            _table(
                "Rows that changed during the run, in use by others",
                ("Table",),
                [[text] for text in self.changed_tables if self.in_use],
            ),
            _table(
                "Recall by size of org",
                ("Chunks", "Orgs", "Queries", "Recall", "Orgs not measured"),
                sizes,
            ),
            _table("Attacks", ("Target", "Tried", "Refused", "Answered", "Differs"), targets),
        ]
        return without_secrets("\n".join(parts), secrets)


def private_members(secret: str) -> list[str]:
    """The private members of a JWK; none of another secret."""
    try:
        key = json.loads(secret)
    except ValueError:
        return []
    return [str(key[name]) for name in PRIVATE_MEMBERS if name in key] if isinstance(key, dict) else []


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, of which a response of the deployment may have repeated one. Longest
    first: one may be a part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            for form in (secret, json.dumps(secret)[1:-1], escape(secret)):
                text = text.replace(form, "[secret]")
    return text


def _figure(result: Recall) -> str:
    return "not measured" if result.recall is None else f"{result.recall:.3f}"


def _recall_text(result: Recall) -> str:
    orgs = f"{result.orgs} org{'' if result.orgs == 1 else 's'}"
    skipped = f", not measured for {result.skipped}, of which no member is known" if result.skipped else ""
    if not result.orgs:
        return f"not measured for {result.skipped} of less than {result.chunks:,} chunks: no member is known"
    return f"{_figure(result)} for {orgs} of less than {result.chunks:,} chunks{skipped}"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(text)}" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}" for cell in row) for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{head}{body}</table>"
