"""Version of the installed package, where every layer may import it."""

from importlib.metadata import version

__version__ = version("physsm")
