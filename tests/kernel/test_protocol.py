"""Jupyter's own kernel test suite."""

from __future__ import annotations

import jupyter_kernel_test
import pytest


@pytest.mark.usefixtures("jupyter_home")
class TestProtocol(jupyter_kernel_test.KernelTests):
    kernel_name = "perspex"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('oops', file=sys.stderr)"
    code_page_something = "zip?"
    code_generate_error = "raise ValueError('on purpose')"
    code_execute_result = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n * n for n in range(4)]", "result": "[0, 1, 4, 9]"},
    ]
    code_display_data = [
        {
            "code": "from IPython.display import HTML, display; display(HTML('<b>bold</b>'))",
            "mime": "text/html",
        }
    ]
    code_history_pattern = "1?2*"
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"
    completion_samples = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples = ["1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n"]
    incomplete_code_samples = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples = ["import = 7q"]
    # ipykernel keeps no session numbers that the suite's "range" request would find.
    supported_history_operations = ("tail", "search")
    support_iopub_welcome = True


@pytest.mark.usefixtures("jupyter_home")
class TestWelcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "perspex"
    support_iopub_welcome = True
