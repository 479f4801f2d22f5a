"""What must be judged anew, as chunks came or changed."""
