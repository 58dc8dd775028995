"""Who answers in a session at the moment, across tasks, processes and machines."""
