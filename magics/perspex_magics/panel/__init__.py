"""The kernel's side of the live panel: tables of what happens, pushed to whoever looks.

A page opens the comm target `perspex.panel` and says which topics it shows; `schema.json` is the
contract. `target` registers the target, `service` answers messages, `outbox` sends changes from a
thread of its own, `topics` makes the rows of each table from what the rest of the extension keeps.

What always holds: as long as no page is open there is no thread and no listener; a handler of a
message runs none of the user's code; a message is sent without a parent, so that it belongs to no
cell.
"""
