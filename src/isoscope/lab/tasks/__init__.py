"""What the lab's models learn; `table.py` lists the tasks."""
