"""Starts, watches and stops engine processes from launch plans. Does not know what is measured on them."""
