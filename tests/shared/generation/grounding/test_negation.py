"""What a source denies is not said, nor what it says denied, in whatever words."""

from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import Verdict
from tests.shared.examples import match

TURNED = [
    ("It is not possible to undo a deletion.", "You can undo a deletion."),
    ("Users aren't allowed to share accounts.", "You may share accounts."),
    ("Users aren't allowed to share accounts.", "Users share accounts."),
    ("Without approval, travel is not reimbursed.", "Travel is reimbursed without approval."),
    ("Employees do not have to work on Sunday.", "Employees do not work on Sunday."),
    ("Employees do not have to work on Sunday.", "Employees have to work on Sunday."),
    ("Access is denied to contractors.", "Access is granted to contractors."),
    ("Recording calls is prohibited.", "Recording calls is allowed."),
    ("It is forbidden to record calls.", "You may record calls."),
    ("Logging is disabled by default.", "Logging is enabled by default."),
    ("The plan excludes dental care.", "The plan includes dental care."),
    ("The plan includes dental care.", "The plan excludes dental care."),
    ("Keep the kettle above 5 degrees.", "Keep the kettle below 5 degrees."),
    ("The maximum is 5 toasters.", "The minimum is 5 toasters."),
    ("Restart the kettle before the update.", "Restart the kettle after the update."),
    ("Доступ подрядчикам не разрешён.", "Доступ подрядчикам разрешён."),
    ("不允许员工共享账户。", "允许员工共享账户。"),
    ("アカウントは共有できません。", "アカウントは共有できます。"),
    ("계정을 공유할 수 없습니다.", "계정을 공유할 수 있습니다."),
]
SUPPORTED = [
    ("It is not possible to undo a deletion.", "A deletion cannot be undone."),
    ("Users aren't allowed to share accounts.", "Sharing accounts is not allowed."),
    ("Users aren't allowed to share accounts.", "It is forbidden to share accounts."),
    (
        "Accounts are personal. Users aren't allowed to share their account.",
        "No, you cannot share your account, because accounts are personal.",
    ),
    ("Without approval, travel is not reimbursed.", "Travel is not reimbursed without approval."),
    ("Employees do not have to work on Sunday.", "Employees need not work on Sunday."),
    ("Access is denied to contractors.", "Contractors are denied access."),
    ("Backups are made daily at 02:00 UTC.", "Backups are made daily at 2 AM UTC."),
    ("Backups are made daily at 2 PM UTC.", "Backups are made daily at 14:00 UTC."),
    ("The kettle works with milk, not with oil.", "The kettle works with milk."),
    ("Return it within 30 days if it was never used.", "Return it within 30 days."),
    ("Logging is disabled by default.", "By default, logging is disabled."),
]


def test_equal_statements_are_supported_and_a_negated_source_is_not():
    for verdict, pairs in ((Verdict.UNSUPPORTED, TURNED), (Verdict.SUPPORTED, SUPPORTED)):
        for source, text in pairs:
            result = Checker([match(source)]).check(text)
            assert result.verdict is verdict
            assert bool(result.reasons) is (verdict is Verdict.UNSUPPORTED)
