"""The exceptions. Each says what was wrong and what to do, in the words of the program."""


class Error(Exception):
    """The base of all exceptions of this package."""

    __module__ = "lately"


class SpecError(Error, ValueError):
    """Terms that cannot be kept: begins with the name of the one that asks for too much."""

    __module__ = "lately"


class StateError(Error, ValueError):
    """A saved filter that is damaged, in use, or was made with other settings."""

    __module__ = "lately"


class MergeError(Error, ValueError):
    """Filters that do not go together."""

    __module__ = "lately"


class KeyTypeError(Error, TypeError):
    """A key, or an array of keys, of a type that has no text of its own."""

    __module__ = "lately"


class TimeError(Error, ValueError):
    """A time that cannot be read."""

    __module__ = "lately"


class InputError(Error, ValueError):
    """An input that cannot be read, or a description of one that does not go together."""

    __module__ = "lately"
