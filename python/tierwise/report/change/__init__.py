"""An advised placement as files for other tools: CloudNativePG, Terraform, Ansible, fio.

Not here: the steps of a move, which are data/moves, and the decision, which is ``advise``'s.
"""

from tierwise.report.change.ansible import playbook
from tierwise.report.change.change import Change, change_of
from tierwise.report.change.cnpg import cluster_patch
from tierwise.report.change.fio import fio_jobs
from tierwise.report.change.terraform import volumes

__all__ = ["Change", "change_of", "cluster_patch", "fio_jobs", "playbook", "volumes"]
