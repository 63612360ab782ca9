"""Jobs over hours or months in which components fail: what each strategy gets done, and what which failures cost.

What others use:

- `Course(hours, checkpoint_min)`: how long the job goes on, and how often it makes a checkpoint.
- `CostCache(folder=None)`: simulated costs in memory and, with a folder, shared by processes; counts `lookups`, `hits`.
- `training_course_rows(spec, strategy, incidents, pattern, seed, course, scenario, cache) -> list[Row]`, `spec` a
  `runners.training_workload.JobSpec`.
- `collective_course_rows(cluster_name, job, strategy, incidents, pattern, seed, course, scenario, cache) -> list[Row]`,
  `job` a `runners.collective.Job`: one collective after another.

Rows, all of one case: `effective_time`, `lost_gpu_h`, `lost_gpu_h[CAUSE]`, `incidents`, `incidents[CAUSE]`, `gpu_h`,
`hours`.
"""

from r2cc_simai.runners.courses.cache import CostCache
from r2cc_simai.runners.courses.course import Course
from r2cc_simai.runners.courses.rows import collective_course_rows, training_course_rows

__all__ = ["CostCache", "Course", "collective_course_rows", "training_course_rows"]
