"""Documents from elsewhere than folders, each origin mirrored into a folder that is read as any."""
