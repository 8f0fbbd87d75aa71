"""What the terminal shows: tables, progress, live views."""
