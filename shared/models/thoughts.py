"""Thoughts that a model writes into its text before the answer, and their removal.

Models such as DeepSeek R1 and Qwen3 mark them with tags. A server without a parser for the model passes the
tags on, some without the first one, which their prompt template has already written.
"""

import re

# Opening and closing marks, in lower case.
MARKS = (
    *(
        (f"<{name}>", f"</{name}>")
        for name in (
            "think", "thinking", "thought", "thoughts", "reason", "reasoning", "reflection", "analysis",
            "seed:think", "mm:think", "scratchpad", "internal_thoughts",
        )
    ),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|think|>", "<|/think|>"),
    ("<unused94>thought", "<unused95>"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    ("<|channel>thought", "<channel|>"),
    ("here is my thought process:", "here is my response:"),
)  # fmt: skip
# Marks around the answer itself, which are removed.
ANSWER_MARKS = re.compile(
    r"<\|(?:begin|end)_of_solution\|>|<\|(?:start|end)_response\|>|<\|(?:return|end)\|>|<\|start\|>assistant|"
    r"^[ \t]*</?(?:output|answer)>[ \t]*$\n?",
    re.IGNORECASE | re.MULTILINE,
)
_BEGUN_MARK = re.compile(r"(?:<(?:\|[a-z_]{0,20}\|?)?|^[ \t]*</?[a-z]{0,6})$", re.IGNORECASE)
_CLOSES = dict(MARKS)
# Within an answer, others are names in XML, such as <reason>.
_MARKS_WITHIN = tuple(marks for marks in MARKS if "think" in marks[0])
# Without an opening mark, these alone end thoughts.
_THOUGHTS = re.compile("think|thought|channel")
_CLOSING = "|".join(re.escape(close) for close in _CLOSES.values() if _THOUGHTS.search(close))
_LONGEST_MARK = 40
_OPENING = re.compile(rf"^[ \t]*(?:{'|'.join(map(re.escape, _CLOSES))})", re.IGNORECASE | re.MULTILINE)
# A closing mark alone, at the start or the end of a line: elsewhere a text quotes it.
# The last one is of gpt-oss, without the brackets of its marks.
_UNOPENED = re.compile(
    rf"(?:^[ \t]*(?:{_CLOSING}))|(?:(?:{_CLOSING})[ \t]*$)|(?<=[^\s])assistantfinal",
    re.IGNORECASE | re.MULTILINE,
)
# First words of thoughts, in lower case. An answer over documents rarely begins with one of them.
FIRST_WORDS = (
    "okay", "ok", "alright", "all right", "hm", "hmm", "hmmm", "wait", "let me", "let's", "let us", "so",
    "first", "now", "we need", "we have", "we are", "we must", "i need", "i should", "i'm", "i have",
    "i will", "the user", "the question", "the context", "user asks", "thinking", "looking at",
)  # fmt: skip
# The channel of gpt-oss, without the brackets of its mark.
CHANNEL = "analysis"


class ThoughtFilter:
    """Separates a text, which arrives in parts, into its answer and its thoughts.

    `holds`: whether the model writes thoughts without an opening mark, so that no text before a closing mark
    belongs to the answer; None if that is unknown: then a text that begins as thoughts do is held back. At
    the end, `is_unopened` says whether this text was such, also where its thoughts were returned before that
    showed, and `is_open` whether its thoughts did not end."""

    def __init__(self, *, holds: bool | None = None) -> None:
        self._held = ""
        self._close = ""
        # Whether the held text begins a line, and whether only space and thoughts precede it.
        self._at_line_start, self._is_start = True, True
        # The length of the text that was searched for a closing mark.
        self._searched = 0
        # Whether no text of the answer was returned.
        self._is_empty = True
        self._holds = holds
        self._parts: list[str] = []
        self.is_unopened = False

    @property
    def is_open(self) -> bool:
        return bool(self._close)

    def feed(self, part: str) -> tuple[str, str]:
        """The answer and the thoughts in what has arrived so far and was not returned before."""
        self._held += part
        self._parts.append(part)
        answer, thoughts = "", ""
        while self._held:
            if self._close:
                before, is_closed, after = _partition(self._held, self._close)
                if not is_closed:
                    end = len(before) - _length_of_begun(before, self._close)
                    self._held, thoughts = before[end:], thoughts + before[:end]
                    break
                self._held, thoughts, self._close = after, thoughts + before, ""
                self._at_line_start = self._is_start = True
            elif not (step := self._step()):
                break
            else:
                answer += step[0]
                thoughts += step[1]
        answer = ANSWER_MARKS.sub("", answer)
        if self._is_empty:
            answer = answer.lstrip()
            self._is_empty = not answer
        return answer, thoughts

    def _step(self) -> tuple[str, str] | None:
        """The next piece of the answer or of thoughts without an opening mark; None to wait for more text."""
        if self._is_start:
            self._held = self._held.lstrip()
        if self._at_line_start and self._held:
            line = self._held.lstrip(" \t").lower()
            for mark, close in MARKS if self._is_start else _MARKS_WITHIN:
                if line.startswith(mark):
                    self._close = close
                    self._held = self._held.lstrip(" \t")[len(mark) :]
                    self._is_start = False
                    return "", ""
                if mark.startswith(line):
                    return None
        if self._is_start and self._held:
            begins = _begins_with_thoughts(self._held) if self._holds is None else self._holds
            if begins is None:
                return None
            if begins:
                self._holds = True
                return self._step_of_held()
        if not self._held:
            return None
        self._holds, self._is_start = False, False
        end = self._held.find("\n") + 1
        piece = self._held[:end] if end else self._held
        # A mark around the answer may not have arrived whole.
        begun = None if end else _BEGUN_MARK.search(piece)
        piece = piece[: begun.start()] if begun else piece
        self._held = self._held[len(piece) :]
        self._at_line_start = bool(end)
        return (piece, "") if piece else None

    def _step_of_held(self) -> tuple[str, str] | None:
        # The end of a part is no end of a line.
        closed = _UNOPENED.search(self._held + "\0", self._searched)
        if closed is None:
            self._searched = max(0, len(self._held) - _LONGEST_MARK)
            return None
        thoughts, self._held = self._held[: closed.start()], self._held[closed.end() :]
        self.is_unopened = True
        self._holds = False
        return "", thoughts

    def end(self) -> tuple[str, str]:
        """The rest of the answer and of the thoughts, at the end of the text."""
        held, self._held = self._held, ""
        self.is_unopened = self.is_unopened or _is_unopened("".join(self._parts))
        if self._close:
            return "", held
        closed = _UNOPENED.search(held) if self._holds is not False else None
        if closed:
            return ANSWER_MARKS.sub("", held[closed.end() :].lstrip()), held[: closed.start()]
        return ANSWER_MARKS.sub("", held), ""


def separate(text: str) -> tuple[str, str, ThoughtFilter]:
    """The answer and the thoughts of a whole text, and the filter, which knows the marks that it had."""
    text_filter = ThoughtFilter(holds=_is_unopened(text))
    parts = (text_filter.feed(text), text_filter.end())
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts), text_filter


def _is_unopened(text: str) -> bool:
    """Whether the first closing mark of a whole text has no opening one."""
    closed = _UNOPENED.search(text)
    return closed is not None and not _OPENING.search(text[: closed.start()])


def _begins_with_thoughts(text: str) -> bool | None:
    """Whether it begins as thoughts do; None while it is too short to tell."""
    lower = text.lower()
    for words in (*FIRST_WORDS, CHANNEL):
        if words.startswith(lower):
            return None
        if lower.startswith(words) and lower[len(words)].isalnum() == (words == CHANNEL):
            return True
    return False


def _partition(text: str, mark: str) -> tuple[str, bool, str]:
    position = text.lower().find(mark)
    return (text, False, "") if position < 0 else (text[:position], True, text[position + len(mark) :])


def _length_of_begun(text: str, mark: str) -> int:
    """The length of the longest end of the text that begins the mark."""
    lower = text.lower()
    return next(
        (size for size in range(min(len(mark) - 1, len(text)), 0, -1) if lower.endswith(mark[:size])), 0
    )
