"""tierwise: which of my database's files deserve the fast device?"""

from tierwise.errors import TierwiseError
from tierwise.placement import DeviceSpec, Placement
from tierwise.results import RunResult
from tierwise.results.files import read_results
from tierwise.roles import Role

__all__ = ["DeviceSpec", "Placement", "Role", "RunResult", "TierwiseError", "read_results"]
