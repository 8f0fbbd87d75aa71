"""What the lab teaches its models; table.py lists the tasks."""
