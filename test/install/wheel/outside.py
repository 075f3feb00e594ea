"""A Python that is not on prairie: it says so. SPDX-License-Identifier: MIT"""
import os

import prairie

assert not prairie.is_serving()
assert os.path.exists(prairie.library_path())
assert prairie.version().count(".") == 2
for function in (prairie.stats, prairie.metrics, prairie.purge, prairie.jemalloc_stats):
    try:
        function()
    except prairie.NotServing:
        continue
    raise AssertionError(function)
