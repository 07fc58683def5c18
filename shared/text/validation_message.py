"""Message about the faults of a tool's arguments, for the model that wrote them."""

from pydantic import ValidationError

MAX_CHARACTERS = 500


def validation_message(invalid: ValidationError) -> str:
    """The fields with the rules that they break, without the values."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
        for fault in invalid.errors(include_input=False, include_url=False)
    ]
    return f"The arguments are wrong: {'; '.join(faults)}."[:MAX_CHARACTERS]
