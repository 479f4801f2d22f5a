"""The way out of the scanners."""


class Irregular(Exception):
    """A file is not of the plain shape that a scanner understands; read it line by line.

    It never leaves `ragforge.files`: the line readers give the values, or the error with its line.
    """
