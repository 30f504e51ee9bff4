"""The file protocol between a cluster and an allocator: requests in, answers out.

Ganeti's iallocator protocol, version 2, answered as the ``hail`` of Ganeti 3.0.2 answers it. Pure:
text to text. Where that program is plainly wrong we differ:

* A mirrored instance for which one node is asked is refused with a sentence; hail crashes.
* An existing mirrored instance that has one node only is passed over; hail crashes.
* With exclusive storage, several new instances are placed one on top of the other, in
  any group. hail forgets what it has placed if a group is named, and otherwise all groups but
  the first instance's; ``--strict-compat`` does the same.
* With ``-t`` or ``--simulate`` names in the request are looked up in that cluster; hail takes
  positions from the other one.
* When a group is named, hail may take the new instance for an existing one while it checks
  that every node can be emptied, unless instances of that group come first; we never do. Of
  several new instances hail likewise mixes up those placed before; only counts of refusals
  (``FailN1``) were seen to differ by that.
"""
