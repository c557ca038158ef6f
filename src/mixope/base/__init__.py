"""What every room stands on: errors with hints, arrays, files and folders, cells of text, processes and threads."""
