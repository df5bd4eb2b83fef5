"""The examples are read by type checkers and run by `test_typing`; pytest collects none of them."""

collect_ignore_glob = ["[!t]*.py", "t[!e]*.py"]
