"""Weights and limits of extractive answers, of all steps."""

MAX_SENTENCES, MAX_ITEMS, MAX_NOTES = 2, 10, 2
# Of a statement's score: its similarity to the question, and its share of the question's words.
SIMILARITY_WEIGHT, WORD_WEIGHT = 0.55, 0.45
# Factors of the score: for a sibling's identifier (E-55 for E-17) or clause; for a missing number that the
# question asks for, or a value that the question has; for the document's title.
SHARE_OF_SIBLING, SHARE_WITHOUT_VALUE, SHARE_OF_TITLE = 0.3, 0.7, 0.3
# The share of a word of the question that only the title or the section's heading has, or an identifier that
# only the passage has.
SHARE_OF_CONTEXT = 0.5
# The least score of the best statement of a direct answer: of a sentence or an item, and of all others.
DIRECT_SCORE, DIRECT_SCORE_OF_PART = 0.6, 0.5
# An answer that is not direct has excerpts of three passages. RANK_WEIGHT is added to the scores in the
# passage that the search ranked first, half of it in the next one, a third of it in the one after that.
EXCERPTS, EXCERPT_CHARACTERS, RANK_WEIGHT = 3, 300, 0.2
# The least share of the best score, and that of a next sentence with a pronoun among its first words ("If she
# cannot be reached, ...").
MIN_SHARE, MIN_SHARE_OF_PRONOUN, PRONOUN_WORDS = 0.76, 0.4, 4
# Minimum share of a sentence that adds no further word of the question.
MIN_SHARE_OF_REPEATED = 0.9
# The least share of a sentence that comes first because it decides between yes and no, or gives the reason.
MIN_SHARE_OF_DECIDER, MIN_SHARE_OF_REASON = 0.85, 0.3
# The weight of the question's words in a list against its best item.
LIST_WORD_WEIGHT = 0.2
# The least share of the question's words in the heading of a list and the document's title, if the question
# asks for the list without a plural ("What do I need for ...?").
MIN_SHARE_OF_HEADING = 0.6
# Between the statements of a paragraph or a list: a space, or the end of a line and a bullet.
MAX_GAP = 6
# The words of which two sentences share so many (Jaccard) say the same.
REPEATED_SHARE = 0.6
