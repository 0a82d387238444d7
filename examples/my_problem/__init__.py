"""Your package, for --t2t_usr_dir. The commands import only this file of the folder."""

# Registrations run when their module is imported, so that each such module must be imported here.
from . import my_problem  # noqa: F401
