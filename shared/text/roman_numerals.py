"""Roman numerals."""

_SIGNS = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
    (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def roman(number: int) -> str:
    """In capitals."""
    made, number = "", min(number, 10_000)
    for size, sign in _SIGNS:
        made += sign * (number // size)
        number %= size
    return made
