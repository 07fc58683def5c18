"""Times in questions, asked on Wednesday, 15 April 2026, half past two p.m.

Cases read: the question, the expression in it, after and before (both inclusive; - is open, bare dates are
whole days)."""

from datetime import UTC, datetime, time, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as some

from shared.retrieval.query.dates.extract import time_range

NOW = datetime(2026, 4, 15, 14, 30, tzinfo=UTC)

QUESTIONS_WITH_RANGES = """
incidents today | today | 2026-04-15 | 2026-04-15
yesterday's standup | yesterday's | 2026-04-14 | 2026-04-14
the day before yesterday | the day before yesterday | 2026-04-13 | 2026-04-13
what happened last week | last week | 2026-04-06 | 2026-04-12
incidents of the previous month | of the previous month | 2026-03-01 | 2026-03-31
incidents this month? | this month | 2026-04-01 | 2026-04-30
last quarter's numbers | last quarter's | 2026-01-01 | 2026-03-31
during the last year | during the last year | 2025-01-01 | 2025-12-31
last weekend | last weekend | 2026-04-11 | 2026-04-12
over the last 7 days | over the last 7 days | 2026-04-08 | 2026-04-15
in the last three months | in the last three months | 2026-01-15 | 2026-04-15
errors in the last 24h | in the last 24h | 2026-04-14T14:30 | 2026-04-15T14:30
two weeks ago | two weeks ago | 2026-03-30 | 2026-04-05
a year ago | a year ago | 2025-01-01 | 2025-12-31
more than a year ago | more than a year ago | - | 2025-04-14
older than 6 months | older than 6 months | - | 2025-10-14
changes since March | since March | 2026-03-01 | -
since May | since May | 2025-05-01 | -
since last Friday | since last Friday | 2026-04-10 | -
from March onwards | from March onwards | 2026-03-01 | -
since the beginning of the year | since the beginning of the year | 2026-01-01 | -
before 3 March 2025 | before 3 March 2025 | - | 2025-03-02
by the end of March | by the end of March | - | 2026-03-31
after 2024-06-01 | after 2024-06-01 | 2024-06-02 | -
after May but before August 2025 | after May but before August 2025 | 2025-06-01 | 2025-07-31
in March | in March | 2026-03-01 | 2026-03-31
in may | in may | 2025-05-01 | 2025-05-31
March of last year | March of last year | 2025-03-01 | 2025-03-31
documents from 2024 | from 2024 | 2024-01-01 | 2024-12-31
affected in Q3? | in Q3 | 2025-07-01 | 2025-09-30
2024-Q4 | 2024-Q4 | 2024-10-01 | 2024-12-31
Q1-Q2 2025 | Q1-Q2 2025 | 2025-01-01 | 2025-06-30
in H2 | in H2 | 2025-07-01 | 2025-12-31
first quarter of 2024 | first quarter of 2024 | 2024-01-01 | 2024-03-31
the second half of last year | the second half of last year | 2025-07-01 | 2025-12-31
early 2024 | early 2024 | 2024-01-01 | 2024-12-31
before the end of March | before the end of March | - | 2026-03-31
between January and March | between January and March | 2026-01-01 | 2026-03-31
between November and February | between November and February | 2025-11-01 | 2026-02-28
from November to March 2025 | from November to March 2025 | 2024-11-01 | 2025-03-31
2025-01-01 to 2025-02-01 | 2025-01-01 to 2025-02-01 | 2025-01-01 | 2025-02-01
between 2025 and 2023 | between 2025 and 2023 | 2023-01-01 | 2025-12-31
decided on Monday | on Monday | 2026-04-13 | 2026-04-13
last Wednesday | last Wednesday | 2026-04-08 | 2026-04-08
minutes of 3 March 2025 | of 3 March 2025 | 2025-03-03 | 2025-03-03
the 3rd of May | the 3rd of May | 2025-05-03 | 2025-05-03
on 29 February | on 29 February | 2024-02-29 | 2024-02-29
since 3.3.2025 | since 3.3.2025 | 2025-03-03 | -
logs since 2025-03-04T10:00+02:00 | since 2025-03-04T10:00+02:00 | 2025-03-04 | -
difference between Q4 and Q1 | between Q4 and Q1 | 2025-10-01 | 2026-03-31
shipped in February and March | in February and March | 2026-02-01 | 2026-03-31
in january, february and march 2025? | in january, february and march 2025 | 2025-01-01 | 2025-03-31
last week compared to this week | last week compared to this week | 2026-04-06 | 2026-04-19
not on 2025-02-30 but in Q2 2025 | in Q2 2025 | 2025-04-01 | 2025-06-30
"""
SILENT = (
    "", "may I use this", "what comes in may be wrong", "users may march on", "the march of progress",
    "due by Friday", "changed since the May release", "may 5 people join", "the second attempt",
    "second half of the function", "last time we met", "the week day parser", "INC-2024-7",
    "version 2024.1.3", "port 2024", "the 2024 roadmap", "in 2024 lines of code", "after 2000 ms",
    "since 2000 users", "since the 90s", "Q345", "in h1 tags", "respond within 2 days", "tomorrow",
    "last_week", "on Monday.com", "sun and mon", "between 5 and 10 items", "on 2025-02-30", "03/04/2025",
    "between 2025-03-04 and friends", "hier ist der Fehler", "ab version 2", "mars rover",
    "mayo sauce recipe", "last 9999 years", "on 30 February",
)  # fmt: skip


# Times that are not the documents'.
DOUBTED = """
from 2000 to 3000 users
from 2000 to 2010 miles
after 2000 miles
what is the maximum in 2048 mode
in H2 database
certificate expires in March
when is payday in June
what are the holidays in December
are we open on Sunday?
can I take off on Friday
what is due in March
the release planned for the 3rd of March
by 2026, what do we want to have
holidays in 2026
Q2 2026 roadmap
Q2 roadmap
until the end of 2026
since 2027
between Q1 and Q4 2026
between February and May
incidents in april
employees hired before 2020 get which pension
pension of employees hired before 2020
fiscal year 2024
tax year 2024
this weekend
tonight
"""
MEANT = """
Can you show me incidents in March? | in March
which tickets were closed in March | in March
what was planned in March | in March
is anything broken since March | since March
is there a message from last Friday | from last Friday
what is the status of last week's outage | of last week's
open tickets in March | in March
who is affected in Q3? | in Q3
documents from 2024 about billing | from 2024
from 2023 to 2024, who led sales | from 2023 to 2024
between 1 April 2026 and today | between 1 April 2026 and today
what broke on Wednesday | on Wednesday
incidents last week, what is their root cause | last week
minutes from March about May Chen | from March
what are the holidays in December and what broke last week | last week
"""


def moment(text: str, ends: bool) -> datetime | None:
    if text == "-":
        return None
    results = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return datetime.combine(results, time.max, UTC) if ends and len(text) == len("2025-01-01") else results


def test_common_time_expressions_are_recognised():
    for case in QUESTIONS_WITH_RANGES.strip().splitlines():
        question, text, after, before = (part.strip() for part in case.split("|"))
        period = time_range(question, NOW)
        assert period is not None
        assert (period.text, period.after, period.before) == (
            text,
            moment(after, False),
            moment(before, True),
        )
        assert question[period.start : period.end] == text


def test_lookalikes_of_time_expressions_and_times_that_may_not_be_the_documents_are_ignored():
    questions = [*SILENT, *DOUBTED.strip().splitlines()]
    assert [question for question in questions if time_range(question, NOW) is not None] == []


def test_a_time_beside_ambiguous_words_may_be_certain():
    cases = [tuple(part.strip() for part in case.split("|")) for case in MEANT.strip().splitlines()]
    periods = [(question, time_range(question, NOW)) for question, _ in cases]
    assert [(question, period and period.text) for question, period in periods] == cases


def test_the_first_of_two_times_counts():
    period = time_range("who deployed yesterday what broke in March?", NOW)
    assert period
    assert period.text == "yesterday"


def test_the_clock_may_be_in_another_time_zone():
    # Half past midnight of the 15th in Berlin is the 14th in UTC.
    berlin = datetime(2026, 4, 15, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    period = time_range("today", berlin)
    assert period
    assert period.after == datetime(2026, 4, 14, tzinfo=UTC)


EDGES = [
    (datetime(2026, 1, 1, tzinfo=UTC), "in December", datetime(2025, 12, 1, tzinfo=UTC)),
    (datetime(2026, 5, 1, tzinfo=UTC), "since May", datetime(2026, 5, 1, tzinfo=UTC)),
    (NOW, "on Wednesday", datetime(2026, 4, 15, tzinfo=UTC)),
    (datetime(2026, 1, 1, tzinfo=UTC), "last month", datetime(2025, 12, 1, tzinfo=UTC)),
    (datetime(2026, 1, 1, tzinfo=UTC), "last quarter", datetime(2025, 10, 1, tzinfo=UTC)),
    (datetime(2026, 3, 31, tzinfo=UTC), "the past month", datetime(2026, 2, 28, tzinfo=UTC)),
    (datetime(2024, 3, 31, tzinfo=UTC), "the past month", datetime(2024, 2, 29, tzinfo=UTC)),
    (datetime(2026, 4, 13, tzinfo=UTC), "last week", datetime(2026, 4, 6, tzinfo=UTC)),
    (datetime(2026, 4, 19, 23, 59, tzinfo=UTC), "last week", datetime(2026, 4, 6, tzinfo=UTC)),
]


def test_the_limits_of_the_calendar_are_exact():
    periods = [(now, question, time_range(question, now)) for now, question, _ in EDGES]
    assert [(now, question, period and period.after) for now, question, period in periods] == EDGES


WORDS = """
since between and from to before until after by in the last past this early end of N days weeks ago month
year Q3 H1 March may 3 2024 31 February 2025-03-04 30.2.2025 Friday week of - , ? seit letzten Monat März
depuis desde marzo de vor drei Tagen 9999 older than first half quarter on
"""


@given(
    some.one_of(
        some.text(max_size=200), some.lists(some.sampled_from(WORDS.split()), max_size=12).map(" ".join)
    ),
    some.datetimes(timezones=some.just(UTC)),
)
def test_a_range_is_ordered_and_its_words_are_in_the_text(text: str, now: datetime):
    period = time_range(text, now)
    if period:
        assert period.after or period.before
        assert not period.after or not period.before or period.after <= period.before
        assert 0 <= period.start < period.end <= len(text)
        assert text[period.start : period.end] == period.text


def test_an_endless_text_is_read_only_in_part():
    assert time_range("x " * 10_000 + "last week", NOW) is None
