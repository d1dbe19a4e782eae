"""An advised placement as files for other tools: CloudNativePG, Terraform, Ansible, fio.

Not here: the steps of a move, which are data/moves, and the decision, which is ``advise``'s.
"""

from tierwise.report.change.ansible import ansible_playbook
from tierwise.report.change.cnpg import cluster_patch
from tierwise.report.change.fio import fio_jobs
from tierwise.report.change.placement_change import PlacementChange, recommended_change
from tierwise.report.change.terraform import terraform_volumes

__all__ = [
    "PlacementChange",
    "ansible_playbook",
    "cluster_patch",
    "fio_jobs",
    "recommended_change",
    "terraform_volumes",
]
