"""Services over HTTP that settings describe: how they are asked, and what their replies hold."""
