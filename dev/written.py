# written.py - what the scripts that write pages have in common: written anew, or told to be old.
# SPDX-License-Identifier: MIT


def is_current(path, text, only_tell, problem):
    """Whether the file has this text when it is done: else it is written, or with only_tell the problem is printed."""
    if path.is_file() and path.read_text() == text:
        return True
    if only_tell:
        print(problem)
        return False
    path.write_text(text)
    return True
