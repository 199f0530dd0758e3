"""Imported by Python itself in the consumers that a bench or test starts: bounds what they read."""

import sys

from tests.chaos.pace import pace_patches
from tests.chaos.patch_on_import import PatchOnImport

if "binwright.consumer" in sys.orig_argv:
    sys.meta_path.insert(0, PatchOnImport(pace_patches()))
