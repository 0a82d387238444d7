"""Your package, for --t2t_usr_dir. The commands import this file and nothing else of the folder."""

# A registration runs when its module is imported, so that each module that has one must be named here.
from . import my_problem  # noqa: F401
