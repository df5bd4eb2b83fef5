"""The kernel's side of the live panel: tables of what happens, pushed to open pages."""
