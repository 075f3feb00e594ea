"""What all parts of the lab share: results, checks, pictures, counted instructions.

SPDX-License-Identifier: MIT
"""
