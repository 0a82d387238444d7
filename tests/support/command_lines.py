"""Command lines of tests, whose flags replace a helper's usual ones."""


def last_of_each(words: list[str]) -> list[str]:
    """Keeps the last of the words `--FLAG=VALUE` of each flag, as commands refuse one that comes twice."""
    return list({word.partition("=")[0]: word for word in words}.values())
