"""Makes the modules beside the wire tests importable: `wire_samples` and `wire_foreign`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
